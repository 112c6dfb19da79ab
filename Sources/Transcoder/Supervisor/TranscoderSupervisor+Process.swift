import Base
import CLinux
import CSandbox
import Dispatch
import Foundation
import Synchronization
import Wire

/// The lives of the process, as its keeper sees them: the body of a thread.
extension TranscoderSupervisor {
    /// Starts the process, listens to it until it ends, and starts it again.
    func keep() {
        var pause = settings.shortestPause
        called.wait()
        while true {
            if state.withLock({ $0.isStopping }) { return }
            let began = now
            do throws(RunningTranscoder.Failure) {
                let process = try RunningTranscoder(settings)
                let wasUnderstood = live(process)
                bury(process, wasUnderstood: wasUnderstood)
            } catch {
                log.error("not-started", ["reason": error.text])
            }
            if state.withLock({ $0.isStopping }) { return }
            if now - began >= settings.lifeThatCounts { pause = settings.shortestPause }
            wait(pause)
            pause = min(pause * 2, settings.longestPause)
        }
    }

    private var now: MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

    /// Lets time pass, unless the end comes first.
    private func wait(_ pause: Duration) {
        let end = now + pause
        while now < end, !state.withLock({ $0.isStopping }) {
            _ = called.wait(timeout: .now() + .nanoseconds(Int(end.nanoseconds(since: now))))
        }
    }

    // MARK: One life

    /// Listens to the process until it ends or says what it should not.
    private func live(_ process: RunningTranscoder) -> Bool {
        state.withLock { state in
            var greeting: [UInt8] = []
            TranscoderRequest.hello(version: TranscoderChannel.version).append(to: &greeting)
            state.queue.insert(contentsOf: greeting, at: 0)
            state.generation += 1
            state.process = process
            state.statistics.starts &+= 1
        }
        filled.signal()
        log.info("started", ["process": process.id])
        var assembler = MessageAssembler()
        var buffer = [UInt8](repeating: 0, count: TranscoderChannel.datagramLimit)
        var watchdog = Watchdog(limit: settings.decodingLimit)
        while true {
            if csandbox_wait(process.descriptor, 1_000) > 0 {
                let count = csandbox_receive(process.descriptor, &buffer, buffer.count)
                guard count > 0 else { return true }
                var isUnderstood = true
                do throws(WireError) {
                    try assembler.receive(buffer[..<Int(count)]) { kind, body in
                        guard let report = try? TranscoderReport(kind, body), take(report) else {
                            return isUnderstood = false
                        }
                    }
                } catch {
                    return false
                }
                guard isUnderstood else { return false }
            }
            if watchdog.isStuck(process.register.entries, at: now, used: process.cpuTime) {
                log.warning("stuck", ["process": process.id])
                return true
            }
            if state.withLock({ $0.isStopping }) { return true }
        }
    }

    /// - Returns: whether that may be said.
    private func take(_ report: TranscoderReport) -> Bool {
        switch report {
        case .hello(let version): return version == TranscoderChannel.version
        case .job(let job, let body): tell(job, .report(body))
        case .packet(let job, let packet): tell(job, .packet(packet))
        case .keyFrameWanted(let input):
            guard let job = state.withLock({ $0.inputs[input]?.job }) else { return true }
            tell(job, .keyFrameWanted(input))
        case .ended(let job):
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
            case .warning, .error: log.warning(event, ["text": text])
            }
        }
        return true
    }

    private func tell(_ job: JobID, _ event: JobEvent) {
        state.withLock { $0.handlers[job] }?(event)
    }

    /// Draws the consequences of a process's end.
    private func bury(_ process: RunningTranscoder, wasUnderstood: Bool) {
        let entries = process.register.entries
        let end = process.end()
        let (handlers, isStopping) = state.withLock { state -> ([Handler], Bool) in
            state.process = nil
            // Partly sent, or meant for a process that knew the jobs.
            state.queue = []
            state.inputs = [:]
            state.pastNanoseconds &+= end.cpuNanoseconds
            state.statistics.cpuNanoseconds = state.pastNanoseconds
            state.statistics.residentBytes = 0
            if !state.isStopping {
                state.statistics.deaths &+= 1
                state.deaths.note(entries.values.map(\.source), at: now)
            }
            defer { state.handlers = [:] }
            return (Array(state.handlers.values), state.isStopping)
        }
        guard !isStopping else { return }
        log.warning(
            "ended",
            [
                "process": process.id, "signal": end.signal, "status": end.status,
                "understood": wasUnderstood, "decoding": entries.count, "jobs": handlers.count,
            ])
        for handler in handlers { handler(.lost) }
    }

    // MARK: Writing

    /// Empties the queue; the body of a thread.
    func write() {
        var batch: [UInt8] = []
        while true {
            filled.wait()
            while true {
                let process = state.withLock { state -> RunningTranscoder? in
                    guard let process = state.process, !state.queue.isEmpty else { return nil }
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

    private func send(_ bytes: [UInt8], to process: RunningTranscoder) {
        var place = 0
        while place < bytes.count {
            let count = min(TranscoderChannel.datagramLimit, bytes.count - place)
            let sent = bytes.withUnsafeBytes {
                csandbox_send(process.descriptor, $0.baseAddress.map { $0 + place }, count)
            }
            // It has ended: its keeper knows.
            guard sent > 0 else { return }
            place += Int(sent)
        }
    }
}

/// Tells a decoder that is stuck from one that has not had its turn.
struct Watchdog {
    private struct Sight {
        let entry: DecodingRegister.Entry
        let since: MonotonicTime
        let used: Duration
    }

    /// One that uses no time at all, and for so many limits, waits for something that does not come.
    private static let waitingFactor = 6
    private let limit: Duration
    private var seen: [Int: Sight] = [:]

    init(limit: Duration) {
        self.limit = limit
    }

    /// - Parameters:
    ///   - entries: what is decoded now; looked at every second or more often.
    ///   - used: CPU time that the process has taken so far: on a busy machine decoders wait.
    mutating func isStuck(
        _ entries: [Int: DecodingRegister.Entry], at now: MonotonicTime, used: Duration
    ) -> Bool {
        seen = seen.filter { entries[$0.key] == $0.value.entry }
        for (index, entry) in entries where seen[index] == nil {
            seen[index] = Sight(entry: entry, since: now, used: used)
        }
        return seen.values.contains { sight in
            now >= sight.since + limit && used - sight.used >= limit
                || now >= sight.since + limit * Self.waitingFactor
        }
    }
}
