import Base
import Peer
import Wire

/// The state of a session as its worker knows it, for operators who look for the cause of a problem.
///
/// Made on request, from numbers that are counted anyway.
package struct SessionMeasurements: Sendable {
    /// An address from which the client's checks came.
    package struct Pair: Equatable, Sendable {
        /// The client's address.
        package var remote: TransportAddress
        /// When something authentic last arrived from it; nil while the address is not proven.
        package var lastHeard: MonotonicTime?
        /// Whether media is sent to it.
        package var isSelected: Bool
    }

    /// When the client reached each phase of joining; nil for those to come.
    package struct Phases: Equatable, Sendable {
        /// The first valid connectivity check.
        package var checked: MonotonicTime?
        /// The end of the DTLS handshake, with a proven address.
        package var connected: MonotonicTime?
        /// The first media packet from a publisher, or to a viewer.
        package var firstMedia: MonotonicTime?
    }

    /// One m-line to the client, and the client's reports on it.
    package struct Sending: Sendable {
        package var mid: String
        package var kind: MediaKind
        /// The track that it carries; nil for none.
        package var track: TrackKey?
        /// Packets sent, without retransmissions.
        package var sent: MediaCounters.Volume
        /// Packets that the client requested again.
        package var resendsRequested: UInt64
        /// Packets that were sent again.
        package var resent: UInt64
        /// The client's latest report; nil before the first.
        package var reception: SendStream.Reception?
    }

    /// The state of the client's data channels.
    package struct Channels: Equatable, Sendable {
        /// Whether the SCTP association is established.
        package var isOpen: Bool
        /// Whether the client opened the control channel.
        package var hasControl: Bool
        /// Bytes queued on the control channel.
        package var buffered: Int
    }

    /// When the measurements were made.
    package var time: MonotonicTime
    package var state: PeerConnection.State
    /// The progress of the client's joining.
    package var phases: Phases
    /// The addresses of the client, proven or not.
    package var pairs: [Pair]
    /// What the client publishes.
    package var sources: [TrackMeasurements]
    /// What the client receives.
    package var sendings: [Sending]
    /// What the client receives of the pictures it wants.
    package var quality: DeliveryQuality
    /// Share of recent packets to the client that were lost, 0 to 1; nil where it is unknown.
    package var lossShare: Double?
    /// All counters of the session.
    package var totals: MediaCounters
    /// Nil if data channels were not negotiated.
    package var channels: Channels?
}

/// The reception of one m-line of a publisher.
package struct TrackMeasurements: Sendable {
    /// One encoding of the track.
    package struct Layer: Equatable, Sendable {
        /// Nil without simulcast.
        package var rid: String?
        /// Whether packets arrived recently.
        package var isActive: Bool
        /// Bit rate over about the last second, in bits a second.
        package var bitrate: Int
        /// In pixels; nil until a key frame has contained it.
        package var width: Int?
        /// In pixels; nil until a key frame has contained it.
        package var height: Int?
        /// Number of packets that the sender has sent, by their sequence numbers.
        package var expected: Int64
        /// Number of packets received, including retransmitted ones.
        package var received: UInt64
        /// Number of packets received by retransmission.
        package var repaired: UInt64
        /// Number of packets that the publisher was asked to send again.
        package var requested: UInt64
        /// Interarrival jitter (RFC 3550 §6.4.1).
        package var jitter: Duration
        /// Key frames received.
        package var keyFrames: UInt64
        /// PLIs and FIRs sent to the publisher.
        package var keyFrameRequests: UInt64

        /// Packets that did not arrive in time, whether they were retransmitted or not.
        package var lost: Int64 {
            max(expected &- Int64(clamping: received &- min(repaired, received)), 0)
        }
        /// Packets that never arrived.
        package var missing: Int64 { max(expected &- Int64(clamping: received), 0) }
    }

    /// The publisher's session.
    package var session: SessionID
    package var mid: String
    package var kind: MediaKind
    package var track: TrackKey
    /// The layers that have received a packet, in order of their first one.
    package var layers: [Layer]
}

extension Session {
    func measurements(at now: MonotonicTime) -> SessionMeasurements {
        SessionMeasurements(
            time: now, state: connection.state,
            phases: SessionMeasurements.Phases(
                checked: progress.checked, connected: progress.connected, firstMedia: progress.firstMedia),
            pairs: connection.addresses.map { address in
                SessionMeasurements.Pair(
                    remote: address, lastHeard: connection.lastHeard(from: address),
                    isSelected: address == connection.remoteAddress)
            },
            sources: sources.map { measurements(of: $0, at: now) },
            sendings: slots.map(\.measurements), quality: quality(at: now), lossShare: path?.lossShare,
            totals: totals,
            channels: plan.dataChannel.map { _ in
                SessionMeasurements.Channels(
                    isOpen: connection.hasDataChannels, hasControl: channels.control != nil,
                    buffered: channels.control.map { connection.buffered($0) } ?? 0)
            })
    }

    /// The measurements of one of the client's tracks; nil for other tracks.
    func measurements(of track: TrackID, at now: MonotonicTime) -> TrackMeasurements? {
        sources.first { $0.track.key.track == track }.map { measurements(of: $0, at: now) }
    }

    private func measurements(of source: Source, at now: MonotonicTime) -> TrackMeasurements {
        TrackMeasurements(
            session: id, mid: source.plan.mid, kind: source.plan.kind, track: source.track.key,
            layers: source.track.layers.compactMap { $0.measurements(at: now) })
    }
}

extension Slot {
    fileprivate var measurements: SessionMeasurements.Sending {
        SessionMeasurements.Sending(
            mid: plan.mid, kind: plan.kind, track: track?.key,
            sent: MediaCounters.Volume(packets: counters.packetsSent, bytes: counters.bytesSent),
            resendsRequested: counters.resendsRequested, resent: counters.packetsResent,
            reception: stream.reception)
    }
}

extension TrackLayer {
    /// Nil for a layer that has never received a packet.
    fileprivate func measurements(at now: MonotonicTime) -> TrackMeasurements.Layer? {
        guard let stream else { return nil }
        return TrackMeasurements.Layer(
            rid: rid, isActive: isActive(at: now), bitrate: bitrate(at: now),
            width: resolution.map { Int($0.width) }, height: resolution.map { Int($0.height) },
            expected: stream.expected, received: stream.counters.packets, repaired: stream.counters.repaired,
            requested: repairsRequested,
            jitter: .nanoseconds(
                Int64(stream.jitter) * 1_000_000_000 / Int64(max(stream.clockRate, 1))),
            keyFrames: keyFrames.keyFrameCount, keyFrameRequests: keyFrames.requestCount)
    }
}
