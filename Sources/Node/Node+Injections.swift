import Base
import Forwarding
import Peer

/// Publishers inside the server: whatever makes media without a peer connection, such as the transcoder.
///
/// Media goes straight from whoever makes it to the worker's mailbox; only what is said about it comes here.
extension Node {
    /// What the node remembers of one.
    struct InjectionRecord {
        let worker: Int
        let events: @Sendable (isolated Node, InjectionEvent) -> Void
    }

    /// What whoever feeds an injection has to know.
    enum InjectionEvent: Equatable, Sendable {
        /// The tracks are there: programmes and slots can be given them.
        case opened([PublishedTrack])
        /// Somebody waits for a key frame of this layer.
        case keyFrameWanted(source: Int, layer: Int)
    }

    /// Makes tracks on the least loaded worker.
    /// - Parameter events: called on the node, in order.
    /// - Returns: where to put packets; nil if the worker takes no more commands.
    func openInjection(
        _ sources: [SourcePlan], events: @escaping @Sendable (isolated Node, InjectionEvent) -> Void
    ) -> InjectionInlet? {
        let worker = leastLoadedWorker
        let id = InjectionID(number: nextInjection)
        guard workers[worker].post(.openInjection(InjectionOpening(id: id, sources: sources))) else {
            return nil
        }
        nextInjection &+= 1
        injections[id] = InjectionRecord(worker: worker, events: events)
        return InjectionInlet(id: id, worker: workers[worker])
    }

    /// Ends an injection; nothing more is told of it.
    func closeInjection(_ id: InjectionID) {
        guard let record = injections.removeValue(forKey: id) else { return }
        _ = workers[record.worker].post(.closeInjection(id))
    }

    func tellInjection(_ id: InjectionID, _ event: InjectionEvent) {
        injections[id]?.events(self, event)
    }
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
