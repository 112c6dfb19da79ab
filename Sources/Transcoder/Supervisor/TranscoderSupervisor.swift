import Base
import Dispatch
import Foundation
import Synchronization
import Wire

/// The server's side of the transcoder: starts it, feeds it, and restarts it when it dies.
///
/// No method waits for the process: messages go into a bounded queue, which a separate thread writes. The process is
/// started with the first job. Jobs do not survive the process: their owners receive `lost`, and may begin them again.
package final class TranscoderSupervisor: Sendable {
    /// Events for the owner of a job, in order.
    ///
    /// Delivered on a thread of the supervisor, which must not be blocked.
    package enum JobEvent: Equatable, Sendable {
        /// A report, in the format of the job's kind.
        case report([UInt8])
        /// An RTP packet that the job produced.
        case packet(OutputPacket)
        /// The job needs a key frame of this input.
        case keyFrameWanted(InputID)
        /// The job ended without a request, or was refused; no event follows.
        case ended
        /// The process ended, and with it this job and its inputs; no event follows.
        case lost
    }

    /// Receives the events of one job.
    package typealias Handler = @Sendable (JobEvent) -> Void

    /// An open input, and what remains of its rate.
    struct Input {
        let job: JobID
        let source: SourceKey
        var packets: Budget
        var bytes: Budget
        /// RTP time stamp of the frame of which packets were dropped; the rest of it is useless.
        var dropped: UInt32?

        /// Takes a packet out of the rate.
        /// - Returns: false if the input exceeds its limits.
        mutating func take(_ count: Int, upTo limits: MessageLimits, at now: MonotonicTime) -> Bool {
            packets.refill(rate: limits.packetsPerInput, at: now)
            bytes.refill(rate: limits.bytesPerInput, at: now)
            return packets.spend(1) && bytes.spend(count)
        }
    }

    /// All that the lock protects.
    struct State {
        /// Serialized messages that wait to be written.
        var queue: [UInt8] = []
        /// Whether the writer is sending earlier messages, which others must not overtake.
        var isWriting = false
        /// Nil while the process is not running.
        var process: RunningTranscoder?
        /// Whether a job has begun, so that the process is to run.
        var isWanted = false
        var isStopping = false
        /// The owners of jobs in progress.
        var handlers: [JobID: Handler] = [:]
        var inputs: [InputID: Input] = [:]
        var deaths = DeathRegister()
        /// For jobs and inputs, whose numbers are never reused.
        var nextNumber: UInt64 = 1
        var statistics = TranscoderStatistics()
        /// CPU time of earlier lives of the process.
        var pastNanoseconds: Int64 = 0
    }

    let settings: TranscoderSettings
    let log: Log
    let state = Mutex(State())
    /// Signaled when the queue is no longer empty.
    let filled = DispatchSemaphore(value: 0)
    /// Signaled when the first job begins, and on `stop`.
    let called = DispatchSemaphore(value: 0)
    private let threads = DispatchGroup()

    /// Starts the two threads; the process starts with the first job.
    package init(_ settings: TranscoderSettings = TranscoderSettings(), log: Log) {
        self.settings = settings
        self.log = log.subsystem("transcoder")
        start("transcoder") { [self] in keep() }
        start("transcoder-out") { [self] in write() }
    }

    private func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
        threads.enter()
        let thread = Thread { [threads] in
            body()
            threads.leave()
        }
        thread.name = name
        thread.start()
    }

    /// Ends the process and both threads, and waits for that.
    package func stop() {
        let isFirst = state.withLock { state in
            defer { state.isStopping = true }
            return !state.isStopping
        }
        guard isFirst else { return }
        kill()
        called.signal()
        filled.signal()
        threads.wait()
    }

    /// Kills the process, as if it had crashed.
    package func kill() {
        state.withLock { $0.process?.kill() }
    }

    /// ID of the process; nil while it is not running.
    package var processID: Int32? { state.withLock { $0.process?.id } }

    /// The counters now; CPU time and memory are as of the process's last report.
    package var statistics: TranscoderStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.isRunning = state.process != nil
            statistics.jobs = state.handlers.count
            statistics.inputs = state.inputs.count
            statistics.queuedBytes = state.queue.count
            statistics.refusedSources = state.deaths.refusedCount(at: now)
            return statistics
        }
    }

    // MARK: Jobs

    /// Begins a job.
    /// - Parameters:
    ///   - body: the request of this kind of job.
    ///   - source: what the job decodes itself; nil for a job with inputs.
    ///   - handler: called on a thread of the supervisor.
    /// - Returns: nil if the process is too far behind, or the source is refused.
    package func begin(
        _ kind: JobKind, _ body: [UInt8], decoding source: SourceKey? = nil, _ handler: @escaping Handler
    ) -> JobID? {
        post { state in
            guard !state.isStopping, Self.hasRoom(state, for: body.count, of: settings.queueLimit),
                source.map({ !state.deaths.refuses($0, at: now) }) ?? true
            else { return nil }
            let job = JobID(number: state.nextNumber)
            state.nextNumber += 1
            state.handlers[job] = handler
            TranscoderRequest.begin(job, kind, body).append(to: &state.queue)
            if !state.isWanted {
                state.isWanted = true
                called.signal()
            }
            return job
        }
    }

    /// Sends a command to a job, in the format of its kind; dropped if the process is too far behind.
    package func command(_ job: JobID, _ body: [UInt8]) {
        post { state in
            guard state.handlers[job] != nil, Self.hasRoom(state, for: body.count, of: settings.queueLimit)
            else { return }
            TranscoderRequest.command(job, body).append(to: &state.queue)
        }
    }

    /// Ends a job; no event follows.
    package func end(_ job: JobID) {
        post { state in
            guard state.handlers.removeValue(forKey: job) != nil else { return }
            state.inputs = state.inputs.filter { $0.value.job != job }
            TranscoderRequest.end(job).append(to: &state.queue)
        }
    }

    // MARK: Inputs

    /// Opens an input of a job.
    /// - Returns: nil if there is no such job, the process is too far behind, or the source is refused.
    package func open(for job: JobID, from source: SourceKey, _ codec: InputCodec) -> InputID? {
        post { state in
            guard state.handlers[job] != nil, !state.deaths.refuses(source, at: now),
                Self.hasRoom(state, for: 0, of: settings.queueLimit)
            else { return nil }
            let input = InputID(number: state.nextNumber)
            state.nextNumber += 1
            let limits = settings.messageLimits
            state.inputs[input] = Input(
                job: job, source: source, packets: Budget(rate: limits.packetsPerInput, at: now),
                bytes: Budget(rate: limits.bytesPerInput, at: now))
            TranscoderRequest.open(input, for: job, from: source, codec).append(to: &state.queue)
            return input
        }
    }

    /// Queues a copy of one packet; dropped if the queue is full or the input exceeds its rate.
    /// - Parameters:
    ///   - packet: without its payload.
    ///   - payload: copied directly into the queue.
    ///   - atOnce: whether to send from the calling thread if that does not block. It saves waking the writer, for
    ///     callers that feed rarely; others leave several packets to one wake-up.
    package func feed(_ input: InputID, _ packet: InputPacket, payload: Span<UInt8>, atOnce: Bool = false) {
        let isFirst = state.withLock { state in
            guard state.inputs[input] != nil else { return false }
            let size = payload.count + 64
            // After a dropped packet the rest of its frame is dropped as well.
            let isBroken = state.inputs[input]?.dropped == packet.timestamp
            guard !isBroken, state.queue.count + size <= settings.queueLimit,
                state.inputs[input]?.take(size, upTo: settings.messageLimits, at: now) == true
            else {
                state.inputs[input]?.dropped = packet.timestamp
                state.statistics.packetsDropped &+= 1
                return false
            }
            let wasEmpty = state.queue.isEmpty
            TranscoderRequest.append(packet, of: input, payload: payload, to: &state.queue)
            guard wasEmpty, atOnce, !state.isWriting, let process = state.process,
                process.sendAtOnce(state.queue)
            else { return wasEmpty }
            state.queue.removeAll(keepingCapacity: true)
            return false
        }
        if isFirst { filled.signal() }
    }

    /// Closes an input; packets that still wait are sent, and ignored by the process.
    package func close(_ input: InputID) {
        post { state in
            guard state.inputs.removeValue(forKey: input) != nil else { return }
            TranscoderRequest.close(input).append(to: &state.queue)
        }
    }

    /// Whether a source is refused because the process died of it too often.
    package func refuses(_ source: SourceKey) -> Bool {
        state.withLock { $0.deaths.refuses(source, at: now) }
    }

    /// Runs `body` with the lock held, and wakes the writer if the queue was empty before and is not now.
    func post<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, isFirst) = state.withLock { state in
            let wasEmpty = state.queue.isEmpty
            let result = body(&state)
            return (result, wasEmpty && !state.queue.isEmpty)
        }
        if isFirst { filled.signal() }
        return result
    }

    /// Whether the queue has capacity for a message other than media: twice the limit of media, because messages
    /// cannot be dropped.
    private static func hasRoom(_ state: State, for bytes: Int, of limit: Int) -> Bool {
        state.queue.count + bytes <= 2 * limit
    }
}
