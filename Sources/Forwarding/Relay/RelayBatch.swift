import Base
import Peer
import Wire

/// Everything that one worker sends to another at the end of a batch of datagrams.
///
/// Packets share one array, so that a batch is two allocations however many packets it holds. Each packet of a track
/// crosses once, however many viewers the other worker has.
package struct RelayBatch: Sendable {
    enum Item: Sendable {
        /// Whether the sender has viewers of this stream now.
        case want(StreamID, Bool)
        /// The sender has a publisher of this stream from now on, who publishes these tracks; later publishers have
        /// higher order numbers.
        case present(StreamID, order: UInt64, [PublishedTrack])
        /// The publisher with this order number has left.
        case withdraw(StreamID, order: UInt64)
        case packet(RelayedPacket)
        /// Whether the sender has slots that carry this track, which the receiver publishes.
        case subscribe(TrackID, Bool)
        case data(DataTrackItem)
        /// Viewers of the sender need a key frame of this track, which the receiver publishes.
        case demandKeyFrame(TrackID, layer: Int, KeyFrameRequester.Reason)
        /// The paths of the sender's viewers cannot carry this track, which the receiver publishes, so they need a
        /// rendition.
        case needRendition(TrackID)
        /// Viewers of the sender are sent these layers of this track, which the receiver publishes.
        case takeLayers(TrackID, LayerSet)
        /// Which layers of this track, which the sender publishes, are resting, by index; nil for those that are
        /// sent.
        case rest(TrackID, [LayerRest.Memory?])
        /// The sender no longer makes renditions of this track, which it publishes.
        case endRenditions(TrackID)
    }

    var items: [Item] = []
    var bytes: [UInt8] = []
    /// Total size of the data-channel messages in `items`.
    private(set) var messageBytes = 0

    var isEmpty: Bool { items.isEmpty }

    /// The same batch without media, messages and notices that are repeated, for a receiver that does not keep up.
    ///
    /// All other notices must arrive.
    var withoutPackets: RelayBatch {
        var rest = RelayBatch()
        rest.items = items.filter { !$0.isDroppable }
        return rest
    }

    mutating func append(_ item: Item) {
        if case .data(let data) = item { messageBytes += data.event.carried?.bytes.count ?? 0 }
        items.append(item)
    }

    mutating func append(_ packet: RelayedPacket, _ contents: Span<UInt8>) {
        var packet = packet
        let start = bytes.count
        bytes.append(contents)
        packet.range = start..<bytes.count
        items.append(.packet(packet))
    }
}

extension RelayBatch.Item {
    /// Whether it may be dropped if the receiver does not keep up.
    fileprivate var isDroppable: Bool {
        switch self {
        // Packets can be missing, and the other two are repeated while they hold.
        case .packet, .needRendition, .takeLayers: true
        case .data(let item): item.event.carried != nil
        case .want, .present, .withdraw, .subscribe, .demandKeyFrame, .endRenditions, .rest: false
        }
    }
}

/// A decrypted RTP packet on its way to another worker.
struct RelayedPacket: Sendable {
    /// The track's number on the worker that received the packet.
    let track: TrackID
    /// Index of the track's layer.
    let layer: Int
    /// Changes when the layer's source restarts.
    let epoch: Int
    /// The source's sequence number, extended beyond 16 bits.
    let sequenceNumber: Int64
    let captured: MonotonicTime?
    /// Set for a packet of the past, which is stored but not forwarded; nil for one that has just arrived.
    var past: Past?
    /// The packet's place in the batch's bytes.
    var range = 0..<0
}

extension RelayedPacket {
    /// A packet of the group of pictures that a copy begins with.
    struct Past: Sendable {
        /// When the publisher's worker received it.
        let arrival: MonotonicTime
        /// Whether it completes the copy.
        let isLast: Bool
    }
}
