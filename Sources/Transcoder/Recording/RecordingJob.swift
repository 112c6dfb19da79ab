import Base
import CLinux
import Dispatch
import Synchronization
import Wire

/// Writes a programme's packets into a file without decoding them.
///
/// The file belongs to the server: the job reports bytes with their offsets. The file begins with a key frame. It ends
/// on command, or when media arrives that does not fit into it.
final class RecordingJob: TranscoderJob {
    private static let interval = DispatchTimeInterval.milliseconds(100)
    /// Most packets that wait for the queue; further ones are dropped.
    private static let backlog = 20_000

    private let queue = DispatchQueue(label: "recording", qos: .utility)
    private let recording: Recording
    private let timer: any DispatchSourceTimer

    /// The machine, and the execution of its actions.
    private final class Recording: Sendable {
        let machine: Mutex<RecordingMachine>
        let waiting = Atomic(0)
        private let environment: JobEnvironment
        /// The source of each input, and that of the latest packet, which is blamed for the work that follows it.
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

        /// Runs the machine under its lock, and takes its actions.
        private func step(_ body: (inout RecordingMachine, MonotonicTime) -> Void) -> [RecordingMachine
            .Action]
        {
            let now = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
            return machine.withLock { machine in
                body(&machine, now)
                return machine.takeActions()
            }
        }

        /// Runs the machine while the latest source is registered, then performs its actions.
        func perform(_ body: (inout RecordingMachine, MonotonicTime) -> Void) {
            let source = sources.withLock { $0.latest }
            // Headers are parsed, also by libavformat, so a hostile bitstream may crash the process here.
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
