import Base
import Forwarding

/// The publishers inside the server that are open: whatever makes media without a peer connection, such as the
/// transcoder.
struct Injections {
    /// What is known of one.
    struct Record {
        let worker: Int
        let events: @Sendable (isolated Node, Event) -> Void
    }

    /// What whoever feeds an injection has to know.
    enum Event: Equatable, Sendable {
        /// The tracks are there: programmes and slots can be given them.
        case opened([PublishedTrack])
        /// Somebody waits for a key frame of this layer.
        case keyFrameWanted(source: Int, layer: Int)
    }

    private var records: [InjectionID: Record] = [:]
    private var last: UInt64 = 0

    /// A name that was never used.
    mutating func nextID() -> InjectionID {
        last &+= 1
        return InjectionID(number: last)
    }

    /// Nil for one that is not open.
    subscript(_ id: InjectionID) -> Record? { records[id] }

    mutating func add(_ record: Record, as id: InjectionID) { records[id] = record }

    mutating func remove(_ id: InjectionID) -> Record? { records.removeValue(forKey: id) }
}
