import Peer

/// Packet and byte counters of sessions, which metrics show.
package struct MediaCounters: Equatable, Sendable {
    /// Numbers of packets and bytes.
    package struct Volume: Equatable, Sendable {
        /// Number of packets.
        package var packets: UInt64 = 0
        /// Number of bytes, including headers.
        package var bytes: UInt64 = 0

        package init(packets: UInt64 = 0, bytes: UInt64 = 0) {
            self.packets = packets
            self.bytes = bytes
        }

        /// Adds one packet of `size` bytes.
        package mutating func add(_ size: Int) {
            packets &+= 1
            bytes &+= UInt64(size)
        }

        package mutating func add(_ other: Volume) {
            packets &+= other.packets
            bytes &+= other.bytes
        }
    }

    /// Dropped packets, by reason.
    package struct Drops: Equatable, Sendable {
        /// Received before, or too old to tell; RTP and RTCP.
        package var replayed: UInt64 = 0
        /// Its authentication tag is wrong.
        package var unauthentic: UInt64 = 0
        /// It cannot be parsed as RTP, RTCP or payload, or belongs to nothing that was injected.
        package var undecodable: UInt64 = 0
        /// It belongs to no m-line.
        package var noRoute: UInt64 = 0
        /// The viewer did not offer the codec.
        package var codecNotNegotiated: UInt64 = 0
        /// It is older than the beginning of the viewer's stream, or follows too wide a gap.
        package var beforeStart: UInt64 = 0
        /// The viewer's address is not known yet.
        package var noAddress: UInt64 = 0
        /// It does not fit into a datagram with the viewer's header, or could not be encrypted.
        package var oversize: UInt64 = 0

        package init() {}

        package mutating func add(_ other: Drops) {
            replayed &+= other.replayed
            unauthentic &+= other.unauthentic
            undecodable &+= other.undecodable
            noRoute &+= other.noRoute
            codecNotNegotiated &+= other.codecNotNegotiated
            beforeStart &+= other.beforeStart
            noAddress &+= other.noAddress
            oversize &+= other.oversize
        }
    }

    /// Retransmissions that viewers requested and did not get, by reason.
    package struct Refusals: Equatable, Sendable {
        /// It is no longer known to have been sent, mostly because its source is gone.
        package var unknown: UInt64 = 0
        /// It never arrived from the publisher, or is no longer in the history.
        package var notInHistory: UInt64 = 0
        /// It was sent again less than a round trip ago, or has just arrived and is about to be sent.
        package var tooSoon: UInt64 = 0
        /// A later key frame has been sent.
        package var beforeKeyFrame: UInt64 = 0
        /// The viewer's retransmission budget is used up.
        package var overBudget: UInt64 = 0

        package init() {}

        package mutating func add(_ other: Refusals) {
            unknown &+= other.unknown
            notInHistory &+= other.notInHistory
            tooSoon &+= other.tooSoon
            beforeKeyFrame &+= other.beforeKeyFrame
            overBudget &+= other.overBudget
        }

        mutating func count(_ verdict: RetransmissionGate.Verdict) {
            switch verdict {
            case .admitted: break
            case .unknown: unknown &+= 1
            case .tooSoon: tooSoon &+= 1
            case .beforeKeyFrame: beforeKeyFrame &+= 1
            case .overBudget: overBudget &+= 1
            }
        }
    }

    /// All decrypted RTP from publishers: media, retransmissions and probes.
    package var received = Volume()
    /// Publishers' audio, each packet once, including retransmitted and recovered ones.
    package var audioReceived = Volume()
    /// Publishers' video, each packet once, including retransmitted ones.
    package var videoReceived = Volume()
    /// Publishers' packets that arrived by retransmission.
    package var packetsRepaired: UInt64 = 0
    /// Publishers' RED packets.
    package var redundancyReceived: UInt64 = 0
    /// Lost audio packets recovered from RED; not included in `packetsRepaired`.
    package var packetsRecovered: UInt64 = 0
    /// Packets that publishers were asked to send again.
    package var repairsRequested: UInt64 = 0

    /// SRTP packets sent to viewers, without retransmissions.
    package var packetsSent: UInt64 = 0
    /// Bytes of those packets.
    package var bytesSent: UInt64 = 0
    /// Audio sent to viewers, without retransmissions; filled in when counters are totaled.
    package var audioSent = Volume()
    /// Video sent to viewers, without retransmissions; filled in when counters are totaled.
    package var videoSent = Volume()
    /// Packets of higher temporal or spatial layers that a viewer was not sent.
    package var packetsThinned: UInt64 = 0
    /// Packets that viewers requested again.
    package var resendsRequested: UInt64 = 0
    /// Packets sent again, by RTX or, where it was not negotiated, as they were.
    package var packetsResent: UInt64 = 0
    /// Audio packets sent with earlier ones in them (RED).
    package var packetsRedundant: UInt64 = 0
    /// Number of times that a viewer got a better picture because its path can carry more.
    package var stepsUp: UInt64 = 0
    /// Number of times that a viewer got a worse picture, or none, because its path can carry less.
    package var stepsDown: UInt64 = 0
    /// Steps down after which no picture is sent; included in `stepsDown`.
    package var picturesStopped: UInt64 = 0
    /// Bytes of probes, including packets that were sent again only for that.
    package var probeBytes: UInt64 = 0
    /// The part of `resendsRequested` that was refused.
    package var refusals = Refusals()

    /// Dropped packets from and to clients.
    package var drops = Drops()
    /// Number of replays of cached pictures.
    package var replays: UInt64 = 0
    /// Number of key frames needed by viewers, or because of loss, that were not cached.
    package var keyFrameDemands: UInt64 = 0
    /// PLIs and FIRs sent to publishers.
    package var keyFrameRequests: UInt64 = 0
    /// Key frames received from publishers.
    package var keyFrames: UInt64 = 0

    package init() {}

    package mutating func add(_ other: MediaCounters) {
        received.add(other.received)
        audioReceived.add(other.audioReceived)
        videoReceived.add(other.videoReceived)
        packetsRepaired &+= other.packetsRepaired
        redundancyReceived &+= other.redundancyReceived
        packetsRecovered &+= other.packetsRecovered
        repairsRequested &+= other.repairsRequested
        packetsSent &+= other.packetsSent
        bytesSent &+= other.bytesSent
        audioSent.add(other.audioSent)
        videoSent.add(other.videoSent)
        packetsThinned &+= other.packetsThinned
        resendsRequested &+= other.resendsRequested
        packetsResent &+= other.packetsResent
        packetsRedundant &+= other.packetsRedundant
        stepsUp &+= other.stepsUp
        stepsDown &+= other.stepsDown
        picturesStopped &+= other.picturesStopped
        probeBytes &+= other.probeBytes
        refusals.add(other.refusals)
        drops.add(other.drops)
        replays &+= other.replays
        keyFrameDemands &+= other.keyFrameDemands
        keyFrameRequests &+= other.keyFrameRequests
        keyFrames &+= other.keyFrames
    }
}
