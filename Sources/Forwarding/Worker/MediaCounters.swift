import Peer

/// Packets and bytes, as sessions count them and metrics show them.
package struct MediaCounters: Equatable, Sendable {
    /// Packets and their bytes.
    package struct Volume: Equatable, Sendable {
        /// Each once.
        package var packets: UInt64 = 0
        /// Of whole packets, headers included.
        package var bytes: UInt64 = 0

        package init(packets: UInt64 = 0, bytes: UInt64 = 0) {
            self.packets = packets
            self.bytes = bytes
        }

        package mutating func add(_ size: Int) {
            packets &+= 1
            bytes &+= UInt64(size)
        }

        package mutating func add(_ other: Volume) {
            packets &+= other.packets
            bytes &+= other.bytes
        }
    }

    /// Packets that went no further, by reason.
    package struct Drops: Equatable, Sendable {
        /// Came before, or is too old to tell; RTP and RTCP.
        package var replayed: UInt64 = 0
        /// Its tag is wrong.
        package var unauthentic: UInt64 = 0
        /// Is no RTP, RTCP or payload that can be read.
        package var undecodable: UInt64 = 0
        /// Belongs to no m-line.
        package var noRoute: UInt64 = 0
        /// The viewer did not offer the codec.
        package var codecNotNegotiated: UInt64 = 0
        /// Older than what the viewer's stream began with.
        package var beforeStart: UInt64 = 0
        /// It is not known yet where the viewer is.
        package var noAddress: UInt64 = 0
        /// Does not fit into a datagram with the viewer's header.
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

    /// Packets that viewers asked for again and did not get, by reason.
    package struct Refusals: Equatable, Sendable {
        /// Belongs to nothing that is still known to have been sent: to a source that was let go of, mostly.
        package var unknown: UInt64 = 0
        /// Never came from the publisher, or is no longer in the history.
        package var notInHistory: UInt64 = 0
        /// Was sent again less than a round trip ago.
        package var tooSoon: UInt64 = 0
        /// A later key frame was sent.
        package var beforeKeyFrame: UInt64 = 0
        /// The viewer was sent too much again lately.
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

    /// All RTP of publishers: media, retransmissions and probes, decrypted.
    package var received = Volume()
    /// Of publishers' audio and video, what was new: each packet once, repaired ones included.
    package var audioReceived = Volume()
    /// The same of video.
    package var videoReceived = Volume()
    /// Of publishers' packets, those that came by retransmission.
    package var packetsRepaired: UInt64 = 0
    /// Of publishers' sound, packets that carried earlier ones, and lost ones that were taken out of them.
    package var redundancyReceived: UInt64 = 0
    /// Not among `packetsRepaired`.
    package var packetsRecovered: UInt64 = 0
    /// Packets that publishers were asked to send again.
    package var repairsRequested: UInt64 = 0

    /// SRTP to viewers, for the first time, not as a retransmission.
    package var packetsSent: UInt64 = 0
    /// Of those packets.
    package var bytesSent: UInt64 = 0
    /// The same by kind; filled in when counters are put together.
    package var audioSent = Volume()
    /// The same of video.
    package var videoSent = Volume()
    /// Packets of higher temporal layers that a viewer did not get, because it does not show them yet.
    package var packetsThinned: UInt64 = 0
    /// Packets that viewers asked for again, and those that were sent again.
    package var resendsRequested: UInt64 = 0
    /// By RTX, or as they were where that was not agreed.
    package var packetsResent: UInt64 = 0
    /// Of sound, those that carried earlier ones again.
    package var packetsRedundant: UInt64 = 0
    /// Times that viewers were given a better picture because their paths take more, and a worse one or none.
    package var stepsUp: UInt64 = 0
    package var stepsDown: UInt64 = 0
    /// Of `stepsDown`, those after which no picture is sent.
    package var picturesStopped: UInt64 = 0
    /// Sent to viewers to find out whether their paths take more; what was sent again for it counts here only.
    package var probeBytes: UInt64 = 0
    /// Of `resendsRequested`.
    package var refusals = Refusals()

    /// Of packets to and from clients.
    package var drops = Drops()
    /// Times that a viewer began with pictures out of the cache.
    package var replays: UInt64 = 0
    /// Times that a viewer or a loss needed a key frame that was not cached.
    package var keyFrameDemands: UInt64 = 0
    /// PLIs and FIRs to publishers.
    package var keyFrameRequests: UInt64 = 0
    /// That publishers sent.
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
