import Dispatch
import Synchronization

/// What waits for the store's thread; bounded, from any thread, in order.
final class WriterQueue: Sendable {
    /// One thing to do within a transaction.
    struct Job: Sendable {
        /// Whether it changes anything: a transaction of questions alone needs no disk.
        let isWrite: Bool
        /// Of what it brings, for the queue's bound.
        let bytes: Int
        /// Does it.
        /// - Returns: what tells of it once the transaction is durable.
        let run: @Sendable (inout Tables) throws(DatabaseError) -> @Sendable () -> Void
        /// Tells that it was not done.
        let refuse: @Sendable (StoreError) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        var bytes = 0
        var isClosed = false
    }

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let limit: Int
    private let byteLimit: Int

    init(limit: Int, bytes: Int) {
        self.limit = limit
        byteLimit = bytes
    }

    /// - Returns: why the job is not taken; nil if it is.
    func add(_ job: Job) -> StoreError? {
        let (refusal, isFirst): (StoreError?, Bool) = state.withLock { state in
            guard !state.isClosed else { return (.closed, false) }
            // One job that is larger than the bound may pass when it is alone.
            guard state.jobs.isEmpty || (state.jobs.count < limit && state.bytes + job.bytes <= byteLimit)
            else { return (.busy, false) }
            state.jobs.append(job)
            state.bytes += job.bytes
            return (nil, state.jobs.count == 1)
        }
        if isFirst { wake.signal() }
        return refusal
    }

    /// Waits for something to do.
    /// - Returns: all there is, in order; empty once the queue is closed and everything was taken.
    func take() -> [Job] {
        while true {
            let (jobs, isClosed) = state.withLock { state in
                let jobs = state.jobs
                state.jobs = []
                state.bytes = 0
                return (jobs, state.isClosed)
            }
            if !jobs.isEmpty || isClosed { return jobs }
            wake.wait()
        }
    }

    /// Refuses what comes from now on.
    func close() {
        state.withLock { $0.isClosed = true }
        wake.signal()
    }

    var count: Int { state.withLock { $0.jobs.count } }
}
