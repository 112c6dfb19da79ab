import Base
import CLinux
import Dispatch
import Synchronization
import Wire

/// Writes the packets of a programme into a file, as they are: nothing is decoded.
///
/// Its server has the file: the job says what belongs where. The file begins with a key frame, and ends when the job is
/// told so, or when something comes that does not fit into it.
final class RecordingJob: TranscoderJob {
    private static let interval = DispatchTimeInterval.milliseconds(100)
    /// Packets that may wait for the queue; more are dropped.
    private static let backlog = 20_000

    private let queue = DispatchQueue(label: "recording", qos: .utility)
    private let recording: Recording
    private let timer: any DispatchSourceTimer

    /// The machine, and where what it wants goes.
    private final class Recording: Sendable {
        let machine: Mutex<RecordingMachine>
        let waiting = Atomic(0)
        private let environment: JobEnvironment
        /// What inputs carry, and what came last, which is held liable for what is written behind it.
        private let sources = Mutex<(all: [InputID: SourceKey], latest: SourceKey?)>(([:], nil))

        init(_ request: RecordingRequest, _ environment: JobEnvironment) {
            machine = Mutex(RecordingMachine(request))
            self.environment = environment
        }

        func open(_ input: InputID, from source: SourceKey) {
            sources.withLock { $0.all[input] = source }
            perform { machine, _ in machine.open(input) }
        }

        func close(_ input: InputID) {
            _ = sources.withLock { $0.all.removeValue(forKey: input) }
            perform { machine, _ in machine.close(input) }
        }

        func take(_ packet: InputPacket, of input: InputID) {
            sources.withLock { $0.latest = $0.all[input] ?? $0.latest }
            perform { $0.take(packet, of: input, at: $1) }
        }

        private func step(_ body: (inout RecordingMachine, MonotonicTime) -> Void) -> [RecordingMachine
            .Action]
        {
            let now = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
            return machine.withLock { machine in
                body(&machine, now)
                return machine.takeActions()
            }
        }

        func perform(_ body: (inout RecordingMachine, MonotonicTime) -> Void) {
            let source = sources.withLock { $0.latest }
            // Nothing is decoded, but headers are read, and libavformat reads them too.
            let actions =
                if let source { environment.register.whileDecoding(source) { step(body) } } else {
                    step(body)
                }
            for action in actions {
                switch action {
                case .report(let report): environment.report(report.bytes)
                case .wantKeyFrame(let input): environment.outlet.send(.keyFrameWanted(input))
                case .end: environment.outlet.send(.ended(environment.id))
                }
            }
        }
    }

    init?(_ body: [UInt8], _ environment: JobEnvironment) {
        guard let request = try? RecordingRequest(body) else { return nil }
        let recording = Recording(request, environment)
        self.recording = recording
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + Self.interval, repeating: Self.interval)
        timer.setEventHandler { recording.perform { $0.advance(to: $1) } }
        timer.resume()
    }

    func command(_ body: [UInt8]) {
        guard body == RecordingCommand.stop else { return }
        queue.async { [recording] in recording.perform { $0.finish(.stopped, at: $1) } }
    }

    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {
        queue.async { [recording] in recording.open(input, from: source) }
    }

    func take(_ packet: InputPacket, of input: InputID) {
        guard recording.waiting.add(1, ordering: .relaxed).newValue <= Self.backlog else {
            recording.waiting.subtract(1, ordering: .relaxed)
            return
        }
        queue.async { [recording] in
            recording.waiting.subtract(1, ordering: .relaxed)
            recording.take(packet, of: input)
        }
    }

    func close(_ input: InputID) {
        queue.async { [recording] in recording.close(input) }
    }

    func end() {
        timer.cancel()
        queue.async { [recording] in recording.perform { machine, _ in machine.abandon() } }
    }
}
