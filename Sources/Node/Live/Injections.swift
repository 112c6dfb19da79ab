import Base
import Forwarding

/// The publishers inside the server: each brings to a worker what the transcoder makes for a stream's viewers.
///
/// This is the register only; media goes directly from the transcoder's thread to the worker's mailbox.
struct Injections {
    /// What the media of an injection is for.
    enum Owner: Hashable {
        case composition(StreamID)
        case pausePicture(StreamID)
        /// Smaller copies of a track that a session publishes.
        case renditions(TrackKey)
    }

    /// An open injection.
    struct Record {
        let owner: Owner
        /// The worker that has the injection's tracks.
        let worker: Int
    }

    private var records: [InjectionID: Record] = [:]
    private var last: UInt64 = 0

    /// Nil for one that is not open.
    subscript(_ id: InjectionID) -> Record? { records[id] }

    /// - Returns: a new ID, which is never used again.
    mutating func open(for owner: Owner, on worker: Int) -> InjectionID {
        last &+= 1
        let id = InjectionID(number: last)
        records[id] = Record(owner: owner, worker: worker)
        return id
    }

    mutating func remove(_ id: InjectionID) -> Record? { records.removeValue(forKey: id) }
}

/// The way into an injection.
///
/// Only one thread at a time may use it, so that packets stay in order.
package struct InjectionInlet: Sendable {
    /// The injection, by which it is closed.
    package let id: InjectionID
    private let worker: WorkerHandle

    init(id: InjectionID, worker: WorkerHandle) {
        self.id = id
        self.worker = worker
    }

    /// Posts packets to the worker.
    /// - Returns: false if the worker does not keep up; the packets are dropped then.
    @discardableResult
    package func send(_ packets: InjectedPackets) -> Bool {
        packets.isEmpty || worker.post(.inject(id, packets))
    }
}
