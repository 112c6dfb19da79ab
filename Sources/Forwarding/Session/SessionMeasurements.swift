import Base
import Peer
import Wire

/// How a session is, as its worker knows it: for whoever looks why it is not better.
///
/// Made when somebody asks, of numbers that are counted anyway.
package struct SessionMeasurements: Sendable {
    /// An address from which the client's checks came, and where it may be.
    package struct Pair: Equatable, Sendable {
        package var remote: TransportAddress
        /// When something authentic last came from there; nil where nobody has proved to be.
        package var lastHeard: MonotonicTime?
        /// Whether media goes there.
        package var isSelected: Bool
    }

    /// How far the client has come; nil for what has not come yet.
    package struct Phases: Equatable, Sendable {
        package var checked: MonotonicTime?
        /// The end of the DTLS handshake, with an address that is proven.
        package var connected: MonotonicTime?
        /// From a publisher, or to a viewer.
        package var firstMedia: MonotonicTime?
    }

    /// One m-line to the client, and what the client says of it.
    package struct Sending: Sendable {
        package var mid: String
        package var kind: MediaKind
        /// What it carries; nil for nothing.
        package var track: TrackKey?
        /// Without retransmissions.
        package var sent: MediaCounters.Volume
        /// Packets that the client asked for again, and those that were sent again.
        package var resendsRequested: UInt64
        package var resent: UInt64
        /// The client's latest report; nil before the first.
        package var reception: SendStream.Reception?
    }

    /// Of the client's data channels.
    package struct Channels: Equatable, Sendable {
        /// Whether the association is up.
        package var isOpen: Bool
        /// Whether the client opened the control channel.
        package var hasControl: Bool
        /// Bytes on the control channel that wait for the client.
        package var buffered: Int
    }

    package var time: MonotonicTime
    package var state: PeerConnection.State
    package var phases: Phases
    package var pairs: [Pair]
    package var sources: [TrackMeasurements]
    package var sendings: [Sending]
    package var quality: DeliveryQuality
    /// Share of the latest packets to the client that are lost, 0 to 1; nil where it does not tell of each.
    package var lossShare: Double?
    package var totals: MediaCounters
    /// Nil where they were not offered.
    package var channels: Channels?
}

/// How one m-line of a publisher comes in.
package struct TrackMeasurements: Sendable {
    /// One encoding of it.
    package struct Layer: Equatable, Sendable {
        package var rid: String?
        package var isActive: Bool
        /// In bits a second.
        package var bitrate: Int
        /// In pixels; nil until a key frame has told.
        package var width: Int?
        package var height: Int?
        /// By sequence numbers.
        package var expected: Int64
        /// Repaired ones included.
        package var received: UInt64
        package var repaired: UInt64
        /// Packets that the publisher was asked for again.
        package var requested: UInt64
        package var jitter: Duration
        package var keyFrames: UInt64
        package var keyFrameRequests: UInt64

        /// Packets that did not come when it was their turn, whether they were repaired or not.
        package var lost: Int64 {
            max(expected &- Int64(clamping: received &- min(repaired, received)), 0)
        }
        /// Packets that never came.
        package var missing: Int64 { max(expected &- Int64(clamping: received), 0) }
    }

    /// Whose it is.
    package var session: SessionID
    package var mid: String
    package var kind: MediaKind
    package var track: TrackKey
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

    /// Of one of the tracks that the client sends; nil for others.
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
    /// Nil for one of which nothing ever came.
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
