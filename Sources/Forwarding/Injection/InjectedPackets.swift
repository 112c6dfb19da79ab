import Base
import Peer
import Wire

/// Names a publisher inside the server; unique within a node.
package struct InjectionID: Hashable, Sendable {
    /// Never used twice.
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// Tracks to be made on a worker for media that the server makes itself.
package struct InjectionOpening: Sendable {
    /// What packets become.
    package enum Target: Sendable {
        /// Tracks of their own, one for each plan; none of them asks for retransmissions, since nothing is lost on the
        /// way.
        case tracks([SourcePlan])
        /// Renditions of a track that is published on the same worker, by `RenditionLayer`.
        case renditions(of: TrackID)
    }

    /// Chosen by control, before the worker knows of it.
    package let id: InjectionID
    package let target: Target

    package init(id: InjectionID, sources: [SourcePlan]) {
        self.id = id
        target = .tracks(sources)
    }

    /// - Parameter track: published by a session of the worker that this goes to.
    package init(id: InjectionID, renditionsOf track: TrackID) {
        self.id = id
        target = .renditions(of: track)
    }
}

/// RTP packets in the clear, on their way from whoever makes them to the worker that sends them on.
///
/// Packets lie one behind the other, so that a frame is one command and two allocations however many packets it has.
package struct InjectedPackets: Sendable {
    struct Item: Sendable {
        /// Place among the injection's sources.
        let source: Int
        /// Place among the source's RIDs; 0 where it has none.
        let layer: Int
        /// When the media was captured, on our clock.
        let captured: MonotonicTime?
        let range: Range<Int>
    }

    private(set) var items: [Item] = []
    private(set) var bytes: [UInt8] = []

    package init() {}

    /// Whether there is nothing to inject.
    package var isEmpty: Bool { items.isEmpty }

    /// - Parameters:
    ///   - source: place among the injection's sources.
    ///   - layer: place among the source's RIDs; 0 where it has none.
    ///   - captured: when the media was captured, on our clock; what was captured together is sent as such.
    package mutating func append(
        _ packet: Span<UInt8>, source: Int, layer: Int = 0, captured: MonotonicTime? = nil
    ) {
        let start = bytes.count
        bytes.append(packet)
        items.append(Item(source: source, layer: layer, captured: captured, range: start..<bytes.count))
    }
}
