import Base
import Peer
import Wire

/// What one worker has to tell another at the end of a batch of its own.
///
/// Packets lie one behind the other in one array, so that a batch is two allocations however many it holds, and a
/// track's packet crosses once, however many viewers the other worker has.
package struct RelayBatch: Sendable {
    enum Item: Sendable {
        /// Whether the sender has viewers of this stream.
        case want(StreamID, Bool)
        /// The sender has a publisher of this stream from now on.
        case present(StreamID, RelayedProgramme)
        /// The publisher that came as number `order` is gone.
        case withdraw(StreamID, order: UInt64)
        case packet(RelayedPacket)
        /// Whether the sender has slots that carry this track of the receiver.
        case subscribe(TrackID, Bool)
        case data(DataTrackItem)
        /// Viewers of the sender need a key frame of this track of the receiver.
        case demandKeyFrame(TrackID, layer: Int, KeyFrameRequester.Reason)
        /// Viewers of the sender have no room for what the publisher of this track of the receiver sends.
        case needRendition(TrackID)
        /// Viewers of the sender take these layers of this track of the receiver.
        case takeLayers(TrackID, LayerSet)
        /// Which layers of this track of the sender rest, by their places.
        case rest(TrackID, [LayerRest.Memory?])
        /// The sender makes no renditions of this track of its own any more.
        case endRenditions(TrackID)
    }

    var items: [Item] = []
    var bytes: [UInt8] = []
    /// Of messages in `items`.
    private(set) var messageBytes = 0

    var isEmpty: Bool { items.isEmpty }

    /// The same without media, for a receiver that does not keep up; what was said must still be heard.
    var withoutPackets: RelayBatch {
        var rest = RelayBatch()
        rest.items = items.filter { !$0.isDroppable }
        return rest
    }

    mutating func append(_ item: Item) {
        if case .data(let data) = item, case .message(let message) = data.event {
            messageBytes += message.bytes.count
        }
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
    /// Whether it may get lost on the way to a worker that does not keep up.
    fileprivate var isDroppable: Bool {
        switch self {
        // It is said again.
        case .packet, .needRendition, .takeLayers: true
        case .data(let item): if case .message = item.event { true } else { false }
        case .want, .present, .withdraw, .subscribe, .demandKeyFrame, .endRenditions, .rest: false
        }
    }
}

/// A decrypted RTP packet on its way to another worker.
struct RelayedPacket: Sendable {
    /// As the worker that received it numbers its tracks.
    let track: TrackID
    /// Place among the track's layers.
    let layer: Int
    /// Changes when the layer's source starts anew.
    let epoch: Int
    /// Extended, as the source counts.
    let sequenceNumber: Int64
    let captured: MonotonicTime?
    /// Of what is not sent on, because it is of the past; nil for what has just come.
    var past: Past?
    /// Where it lies in the batch.
    var range = 0..<0
}

extension RelayedPacket {
    /// A packet of the group of pictures that a copy begins with.
    struct Past: Sendable {
        /// When its publisher's worker got it.
        let arrival: MonotonicTime
        /// Whether the copy is as good as the original with it.
        let isLast: Bool
    }
}

/// What a worker has to know of a publisher on another one.
struct RelayedProgramme: Sendable {
    /// Later publishers have higher numbers.
    let order: UInt64
    let tracks: [RelayedTrack]
}

struct RelayedTrack: Sendable {
    let id: TrackID
    let plan: SourcePlan
    let extensions: ExtensionIDs
}
