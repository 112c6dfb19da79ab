import Base
import Forwarding
import Peer

/// Publishers inside the server, on the workers that carry what they make.
///
/// Media goes straight from whoever makes it to the worker's mailbox; only what is said about it comes here.
extension Node {
    /// Makes tracks on the least loaded worker.
    /// - Parameter events: called on the node, in order.
    /// - Returns: nil if the worker takes no more commands.
    func openInjection(
        _ sources: [SourcePlan], events: @escaping @Sendable (isolated Node, Injections.Event) -> Void
    ) -> InjectionID? {
        let worker = sessions.leastLoadedWorker
        let id = injections.nextID()
        guard workers[worker].post(.openInjection(InjectionOpening(id: id, sources: sources))) else {
            return nil
        }
        injections.add(Injections.Record(worker: worker, events: events), as: id)
        return id
    }

    /// Where to put packets; nil for an injection that is not open.
    func inlet(of id: InjectionID) -> InjectionInlet? {
        injections[id].map { InjectionInlet(id: id, worker: workers[$0.worker]) }
    }

    /// Ends an injection; nothing more is told of it.
    func closeInjection(_ id: InjectionID) {
        guard let record = injections.remove(id) else { return }
        _ = workers[record.worker].post(.closeInjection(id))
    }

    func tellInjection(_ id: InjectionID, _ event: Injections.Event) {
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
