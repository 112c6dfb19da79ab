import Base
import Dispatch
import Foundation
import Synchronization
import Wire

/// The server's side of the transcoder: starts it, feeds it, and starts it again when it dies.
///
/// Nothing here waits for the process: what is said to it goes into a bounded queue, which a thread of its own empties.
/// The process is started when the first job begins. Jobs do not survive it: whoever began one is told that it is
/// `lost`, and may begin it again.
package final class TranscoderSupervisor: Sendable {
    /// What a job's owner is told, in order, by a thread of the supervisor; it must not be held up.
    package enum JobEvent: Equatable, Sendable {
        /// In the job's own words.
        case report([UInt8])
        case packet(OutputPacket)
        case keyFrameWanted(InputID)
        /// The job is over by itself, or was refused; nothing more is told of it.
        case ended
        /// The process is gone, and this job and its inputs with it.
        case lost
    }

    package typealias Handler = @Sendable (JobEvent) -> Void

    struct Input {
        let job: JobID
        let source: SourceKey
        var packets: Budget
        var bytes: Budget
        /// The frame of which packets were dropped: the rest of it is of no use.
        var dropped: UInt32?

        /// - Returns: whether a packet of so many bytes is no more than the input may bring.
        mutating func take(_ count: Int, upTo limits: MessageLimits, at now: MonotonicTime) -> Bool {
            packets.refill(rate: limits.packetsPerInput, at: now)
            bytes.refill(rate: limits.bytesPerInput, at: now)
            return packets.spend(1) && bytes.spend(count)
        }
    }

    struct State {
        var queue: [UInt8] = []
        /// Whether the writer has what was queued before.
        var isWriting = false
        /// Counts processes: what was queued for one is not for the next.
        var generation: UInt64 = 0
        /// Nil while there is no process.
        var process: RunningTranscoder?
        var isWanted = false
        var isStopping = false
        var handlers: [JobID: Handler] = [:]
        var inputs: [InputID: Input] = [:]
        var deaths = DeathRegister()
        var nextNumber: UInt64 = 1
        var statistics = TranscoderStatistics()
        /// CPU time of processes that are gone.
        var pastNanoseconds: Int64 = 0
    }

    let settings: TranscoderSettings
    let log: Log
    let state = Mutex(State())
    /// Something waits for the writer.
    let filled = DispatchSemaphore(value: 0)
    /// Something changed that the keeper waits for.
    let called = DispatchSemaphore(value: 0)
    private let threads = DispatchGroup()

    /// Starts no process yet, only the threads that look after it.
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

    /// Ends the process, and both threads.
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

    /// Ends the process at once, as if it had crashed.
    package func kill() {
        state.withLock { $0.process?.kill() }
    }

    /// Of the process; nil while there is none.
    package var processID: Int32? { state.withLock { $0.process?.id } }

    /// A copy, in which numbers of the process are as of its last report.
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
    /// - Parameter source: what it decodes right away; nil for what has inputs.
    /// - Returns: nil if the process is too far behind, or died of this source too often.
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

    /// Says something to a job, in its own words.
    package func command(_ job: JobID, _ body: [UInt8]) {
        post { state in
            guard state.handlers[job] != nil, Self.hasRoom(state, for: body.count, of: settings.queueLimit)
            else { return }
            TranscoderRequest.command(job, body).append(to: &state.queue)
        }
    }

    /// Ends a job: nothing more is told of it.
    package func end(_ job: JobID) {
        post { state in
            guard state.handlers.removeValue(forKey: job) != nil else { return }
            state.inputs = state.inputs.filter { $0.value.job != job }
            TranscoderRequest.end(job).append(to: &state.queue)
        }
    }

    // MARK: Inputs

    /// Begins to feed a track to a job.
    /// - Returns: nil if there is no such job, or the process died of this source too often.
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

    /// Feeds one packet; a copy into the queue, or nothing where that is full or the input brings too much.
    /// - Parameters:
    ///   - packet: without its payload, which lies elsewhere.
    ///   - atOnce: whether the caller sends it, where that can be done without waiting: it saves the writer's turn, and
    ///     is for who feeds seldom. Others leave several packets to one turn.
    package func feed(_ input: InputID, _ packet: InputPacket, payload: Span<UInt8>, atOnce: Bool = false) {
        let isFirst = state.withLock { state in
            guard state.inputs[input] != nil else { return false }
            let size = payload.count + 64
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

    /// Ends an input; packets that still wait are read and dropped.
    package func close(_ input: InputID) {
        post { state in
            guard state.inputs.removeValue(forKey: input) != nil else { return }
            TranscoderRequest.close(input).append(to: &state.queue)
        }
    }

    /// Whether the process died too often while it decoded this.
    package func refuses(_ source: SourceKey) -> Bool {
        state.withLock { $0.deaths.refuses(source, at: now) }
    }

    func post<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, isFirst) = state.withLock { state in
            let wasEmpty = state.queue.isEmpty
            let result = body(&state)
            return (result, wasEmpty && !state.queue.isEmpty)
        }
        if isFirst { filled.signal() }
        return result
    }

    /// What is said may take as much room again as media: it cannot be dropped.
    private static func hasRoom(_ state: State, for bytes: Int, of limit: Int) -> Bool {
        state.queue.count + bytes <= 2 * limit
    }
}
