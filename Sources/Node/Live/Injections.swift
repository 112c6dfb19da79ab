import Base
import Forwarding

/// The publishers inside the server: what the transcoder makes for a stream's viewers goes out by one.
///
/// Media goes straight from whoever makes it to the worker's mailbox.
struct Injections {
    /// What media is made for.
    enum Owner: Hashable {
        case composition(StreamID)
        case pausePicture(StreamID)
        /// What a session publishes.
        case renditions(TrackKey)
    }

    /// What is known of one.
    struct Record {
        let owner: Owner
        /// Which carries the tracks.
        let worker: Int
    }

    private var records: [InjectionID: Record] = [:]
    private var last: UInt64 = 0

    /// Nil for one that is not open.
    subscript(_ id: InjectionID) -> Record? { records[id] }

    /// - Returns: its name, which was never used.
    mutating func open(for owner: Owner, on worker: Int) -> InjectionID {
        last &+= 1
        let id = InjectionID(number: last)
        records[id] = Record(owner: owner, worker: worker)
        return id
    }

    mutating func remove(_ id: InjectionID) -> Record? { records.removeValue(forKey: id) }
}

/// Where packets of an injection go; to be used by one thread at a time, so that they stay in order.
package struct InjectionInlet: Sendable {
    /// What closes the injection.
    package let id: InjectionID
    private let worker: WorkerHandle

    init(id: InjectionID, worker: WorkerHandle) {
        self.id = id
        self.worker = worker
    }

    /// Hands packets to the worker.
    /// - Returns: false if it does not keep up; then they are dropped.
    @discardableResult
    package func send(_ packets: InjectedPackets) -> Bool {
        packets.isEmpty || worker.post(.inject(id, packets))
    }
}
