import Base
import CLinux
import CSandbox
import Dispatch
import Foundation
import Synchronization
import Wire

/// The thread that starts and watches the process, and the thread that writes to it.
extension TranscoderSupervisor {
    /// Starts the process, listens to it until it ends, and restarts it; the body of a thread.
    func keep() {
        var pause = settings.shortestPause
        // The process is not started before the first job.
        called.wait()
        while true {
            if state.withLock({ $0.isStopping }) { return }
            let began = now
            do throws(RunningTranscoder.Failure) {
                let process = try RunningTranscoder(settings)
                let end = live(process)
                if bury(process, end) == TranscoderProcess.unconfinedStatus {
                    // A restart will hardly help, so the log is not flooded.
                    pause = settings.longestPause
                    log.error("unconfined", ["remedy": Self.remedy])
                }
            } catch {
                log.error("not-started", ["reason": error.text])
            }
            if state.withLock({ $0.isStopping }) { return }
            if now - began >= settings.lifeThatCounts { pause = settings.shortestPause }
            wait(pause)
            pause = min(pause * 2, settings.longestPause)
        }
    }

    /// Advice for the log where the kernel does not support confinement.
    private static let remedy =
        "the kernel doesn't provide Landlock (Linux 5.13) or seccomp; to run without them, set "
        + "--transcoder-confinement off; to decode nothing, set --transcoder off"

    var now: MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

    /// Sleeps, but returns early when the supervisor stops.
    private func wait(_ pause: Duration) {
        let end = now + pause
        while now < end, !state.withLock({ $0.isStopping }) {
            _ = called.wait(timeout: .now() + .nanoseconds(Int(end.nanoseconds(since: now))))
        }
    }

    // MARK: One life

    /// Why a life of the process is over, as seen by the server.
    private enum End {
        /// The process ended, or the server is stopping.
        case ended
        /// A message could not be parsed, or was not permitted.
        case misunderstood
        /// The process exceeded its message limits.
        case talkative
        /// Decoders of these sources are stuck.
        case stuck([SourceKey])
    }

    /// The state of reading from one life of the process.
    private struct Speech {
        var assembler = MessageAssembler()
        var errors = ErrorLines()
        var budget: MessageBudget
        var buffer = [UInt8](repeating: 0, count: TranscoderChannel.datagramLimit)
        /// Reads its standard error; -1 once that is closed.
        var errorDescriptor: Int32
    }

    /// Reads from the process until it ends, violates a limit, or hangs.
    private func live(_ process: RunningTranscoder) -> End {
        let greeted = state.withLock { state in
            var greeting: [UInt8] = []
            TranscoderRequest.hello(version: TranscoderChannel.version).append(to: &greeting)
            // Ahead of the requests that waited for the process.
            state.queue.insert(contentsOf: greeting, at: 0)
            state.process = process
            state.statistics.starts &+= 1
            return now
        }
        filled.signal()
        log.info("started", ["process": process.id])
        var speech = Speech(
            budget: MessageBudget(settings.messageLimits, at: greeted), errorDescriptor: process.errors)
        var watchdog = Watchdog(limit: settings.decodingLimit)
        while true {
            // Wakes at least once per second for the watchdog and for `stop`.
            let ready = csandbox_wait_either(process.descriptor, speech.errorDescriptor, 1_000)
            speech.budget.advance(to: now, jobs: state.withLock { $0.handlers.count })
            if ready > 0, ready & 2 != 0, !hearErrors(&speech) { return .talkative }
            if ready > 0, ready & 1 != 0, let end = hear(process, &speech) {
                // Standard error may contain the reason, and is complete by now.
                _ = hearErrors(&speech)
                for line in speech.errors.flush() { log.warning("said", ["text": line]) }
                return end
            }
            let stuck = watchdog.stuck(process.register.entries, at: now, used: process.cpuTime)
            if !stuck.isEmpty {
                log.warning("stuck", ["process": process.id])
                return .stuck(stuck)
            }
            if state.withLock({ $0.isStopping }) { return .ended }
        }
    }

    /// Processes a datagram.
    /// - Returns: why it was the last; nil if more can follow.
    private func hear(_ process: RunningTranscoder, _ speech: inout Speech) -> End? {
        let count = unsafe csandbox_receive(process.descriptor, &speech.buffer, speech.buffer.count)
        // The process ended before it had read everything. Linux reports that once, before the remaining data.
        guard count != -Int64(ECONNRESET) else { return nil }
        guard count > 0 else { return .ended }
        guard speech.budget.takeDatagram(Int(count)) else { return .talkative }
        var end: End?
        do throws(WireError) {
            try speech.assembler.receive(speech.buffer[..<Int(count)]) { kind, body in
                guard end == nil else { return }
                guard speech.budget.takeMessage() else { return end = .talkative }
                guard let report = try? TranscoderReport(kind, body) else { return end = .misunderstood }
                if case .log = report, !speech.budget.takeLine() { return }
                if !take(report) { end = .misunderstood }
            }
        } catch {
            return .misunderstood
        }
        return end
    }

    /// Logs what the process wrote to standard error.
    /// - Returns: false if it exceeds the limit.
    private func hearErrors(_ speech: inout Speech) -> Bool {
        guard speech.errorDescriptor >= 0 else { return true }
        let count = unsafe csandbox_read(speech.errorDescriptor, &speech.buffer, speech.buffer.count)
        guard count > 0 else {
            // 0 means closed; negative means that nothing is available.
            if count == 0 { speech.errorDescriptor = -1 }
            return true
        }
        for line in speech.errors.receive(speech.buffer[..<Int(count)]) where speech.budget.takeLine() {
            log.warning("said", ["text": line])
        }
        return speech.budget.takeErrors(Int(count))
    }

    /// Processes a report; those about unknown jobs and inputs are ignored.
    /// - Returns: false if the process's version differs.
    private func take(_ report: TranscoderReport) -> Bool {
        switch report {
        case .hello(let version): return version == TranscoderChannel.version
        case .job(let job, let body): tell(job, .report(body))
        case .packet(let job, let packet): tell(job, .packet(packet))
        case .keyFrameWanted(let input):
            guard let job = state.withLock({ $0.inputs[input]?.job }) else { return true }
            tell(job, .keyFrameWanted(input))
        case .ended(let job):
            // The process keeps the job until it receives `end`.
            let handler = post { state -> Handler? in
                guard let handler = state.handlers.removeValue(forKey: job) else { return nil }
                state.inputs = state.inputs.filter { $0.value.job != job }
                TranscoderRequest.end(job).append(to: &state.queue)
                return handler
            }
            handler?(.ended)
        case .load(let load):
            state.withLock { state in
                state.statistics.cpuNanoseconds = state.pastNanoseconds &+ load.cpuNanoseconds
                state.statistics.residentBytes = load.residentBytes
            }
        case .log(let level, let event, let text):
            switch level {
            case .debug: log.debug(event, ["text": text])
            case .info: log.info(event, ["text": text])
            // An error of the transcoder is a warning of the server.
            case .warning, .error: log.warning(event, ["text": text])
            }
        }
        return true
    }

    /// Passes an event to a job's owner, without holding the lock.
    private func tell(_ job: JobID, _ event: JobEvent) {
        state.withLock { $0.handlers[job] }?(event)
    }

    /// Cleans up after the process: blames sources, informs the owners of jobs, and resets the queue.
    /// - Returns: its exit status.
    private func bury(_ process: RunningTranscoder, _ reason: End) -> Int32 {
        var blamed = process.register.entries.values.map(\.source)
        var wasUnderstood = true
        switch reason {
        case .ended: break
        case .misunderstood: wasUnderstood = false
        case .talkative: log.warning("talkative", ["process": process.id])
        // Other decoders at work are not to blame for a stuck one.
        case .stuck(let sources): blamed = sources
        }
        let end = process.end()
        let (handlers, isStopping) = state.withLock { state -> ([Handler], Bool) in
            state.process = nil
            // The queue is partly sent, and refers to jobs that no longer exist.
            state.queue = []
            state.inputs = [:]
            state.pastNanoseconds &+= end.cpuNanoseconds
            state.statistics.cpuNanoseconds = state.pastNanoseconds
            state.statistics.residentBytes = 0
            if !state.isStopping {
                state.statistics.deaths &+= 1
                state.deaths.note(blamed, at: now)
            }
            defer { state.handlers = [:] }
            return (Array(state.handlers.values), state.isStopping)
        }
        guard !isStopping else { return end.status }
        log.warning(
            "ended",
            [
                "process": process.id, "signal": end.signal, "status": end.status,
                "understood": wasUnderstood, "decoding": blamed.count, "jobs": handlers.count,
            ])
        for handler in handlers { handler(.lost) }
        return end.status
    }

    // MARK: Writing

    /// Writes the queue to the process; the body of a thread.
    func write() {
        var batch: [UInt8] = []
        while true {
            filled.wait()
            while true {
                let process = state.withLock { state -> RunningTranscoder? in
                    state.isWriting = false
                    guard let process = state.process, !state.queue.isEmpty else { return nil }
                    state.isWriting = true
                    // The buffers are exchanged, so that both keep their capacity.
                    swap(&batch, &state.queue)
                    return process
                }
                guard let process else { break }
                send(batch, to: process)
                batch.removeAll(keepingCapacity: true)
            }
            if state.withLock({ $0.isStopping }) { return }
        }
    }

    /// Sends bytes in datagrams; blocks while the socket is full.
    private func send(_ bytes: [UInt8], to process: RunningTranscoder) {
        var place = 0
        while place < bytes.count {
            let count = min(TranscoderChannel.datagramLimit, bytes.count - place)
            let sent = unsafe bytes.withUnsafeBytes {
                unsafe csandbox_send(process.descriptor, $0.baseAddress.map { unsafe $0 + place }, count)
            }
            // The process has ended, which the reading thread detects.
            guard sent > 0 else { return }
            place += Int(sent)
        }
    }
}
