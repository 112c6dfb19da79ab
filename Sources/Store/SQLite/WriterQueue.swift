import Dispatch
import Synchronization

/// Jobs for the store's thread, in order; bounded, and filled from any thread.
final class WriterQueue: Sendable {
    /// Something to do within a transaction.
    struct Job: Sendable {
        /// Whether it changes anything: a transaction with queries alone does not wait for the disk.
        let isWrite: Bool
        /// Size of what it writes, for the queue's limit.
        let bytes: Int
        /// Does the work.
        /// - Returns: reports success; called once the transaction is durable.
        let run: @Sendable (inout Tables) throws(DatabaseError) -> @Sendable () -> Void
        /// Reports that nothing was done.
        let refuse: @Sendable (StoreError) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        var bytes = 0
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Signaled when the first job comes and when the queue is closed.
    private let wake = DispatchSemaphore(value: 0)
    private let limit: Int
    private let byteLimit: Int

    init(limit: Int, bytes: Int) {
        self.limit = limit
        byteLimit = bytes
    }

    /// - Returns: why the job is refused; nil if it is queued.
    func add(_ job: Job) -> StoreError? {
        let (refusal, isFirst): (StoreError?, Bool) = state.withLock { state in
            guard !state.isClosed else { return (.closed, false) }
            // A job larger than the limit is accepted while the queue is empty; otherwise it could never run.
            guard state.jobs.isEmpty || (state.jobs.count < limit && state.bytes + job.bytes <= byteLimit)
            else { return (.busy, false) }
            state.jobs.append(job)
            state.bytes += job.bytes
            return (nil, state.jobs.count == 1)
        }
        // Further jobs need no signal: the thread takes all of them together.
        if isFirst { wake.signal() }
        return refusal
    }

    /// Blocks until there is something to do.
    /// - Returns: all jobs, in order; empty once the queue is closed and everything was taken.
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

    /// Refuses jobs from now on.
    func close() {
        state.withLock { $0.isClosed = true }
        wake.signal()
    }

    var count: Int { state.withLock { $0.jobs.count } }
}
