import Base
import Peer
import Wire

/// Identifies a publisher inside the server; unique within a node.
package struct InjectionID: Hashable, Sendable {
    /// Never reused.
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// A request to create tracks on a worker for media that the server makes itself.
package struct InjectionOpening: Sendable {
    /// What the packets become.
    package enum Target: Sendable {
        /// Separate tracks, one per plan. They request no retransmissions, because nothing is lost on the way.
        case tracks([SourcePlan])
        /// Renditions of a track that is published on the same worker; `RenditionLayer` numbers them.
        case renditions(of: TrackID)
    }

    /// Chosen by control before it sends the command.
    package let id: InjectionID
    /// What the packets of this injection become.
    package let target: Target

    package init(id: InjectionID, sources: [SourcePlan]) {
        self.id = id
        target = .tracks(sources)
    }

    /// - Parameter track: must be published by a session of the worker that receives this opening.
    package init(id: InjectionID, renditionsOf track: TrackID) {
        self.id = id
        target = .renditions(of: track)
    }
}

/// Unencrypted RTP packets on their way from their producer to the worker that forwards them.
///
/// All packets share one array, so that a frame is one command and two allocations, however many packets it has.
package struct InjectedPackets: Sendable {
    /// One packet and its place.
    struct Item: Sendable {
        /// Index of the injection's source.
        let source: Int
        /// Index of the source's RID; 0 for a source without RIDs.
        let layer: Int
        /// When the media was captured, on the server's clock; nil where it is unknown.
        let captured: MonotonicTime?
        /// The packet's place in `bytes`.
        let range: Range<Int>
    }

    private(set) var items: [Item] = []
    private(set) var bytes: [UInt8] = []

    package init() {}

    /// Whether there is nothing to inject.
    package var isEmpty: Bool { items.isEmpty }

    /// Appends a packet.
    /// - Parameters:
    ///   - source: index of the injection's source.
    ///   - layer: index of the source's RID; 0 for a source without RIDs.
    ///   - captured: when the media was captured, on the server's clock; receivers synchronize audio and video by it.
    package mutating func append(
        _ packet: Span<UInt8>, source: Int, layer: Int = 0, captured: MonotonicTime? = nil
    ) {
        let start = bytes.count
        bytes.append(packet)
        items.append(Item(source: source, layer: layer, captured: captured, range: start..<bytes.count))
    }
}
