import Base
import CSandbox
import Foundation

/// One life of the process, and our end of its socket.
///
/// The descriptors are closed when nobody uses them any longer, so that none is written to that was given to somebody
/// else. The process is waited for by `end`, which must be called once; until then its id means nobody else.
final class RunningTranscoder: Sendable {
    struct Failure: Error {
        let code: Int32

        var text: String { unsafe String(cString: strerror(code)) }
    }

    /// How it ended.
    struct End: Sendable {
        let signal: Int32
        let status: Int32
        let cpuNanoseconds: Int64
    }

    let id: Int32
    let descriptor: Int32
    /// What the process writes to standard error; -1 where that is the server's own.
    let errors: Int32
    let register: DecodingRegister

    /// What the process may know of the server's environment: no secret is in there.
    private static let passedOn = ["LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "FONTCONFIG_FILE"]

    /// To be called by a thread that lives as long as the process shall: the kernel ends the one with the other.
    init(_ settings: TranscoderSettings) throws(Failure) {
        var ends: [Int32] = [-1, -1]
        let result = unsafe csandbox_channel(&ends, Int32(TranscoderChannel.socketBuffer))
        guard result == 0 else { throw Failure(code: -result) }
        defer { csandbox_close(ends[1]) }
        let memory = csandbox_shared_memory(DecodingRegister.size)
        guard memory >= 0, let register = DecodingRegister(descriptor: memory) else {
            csandbox_close(ends[0])
            throw Failure(code: memory < 0 ? -memory : ENOMEM)
        }
        defer { csandbox_close(memory) }
        // What a sanitizer finds is shown as it is.
        var pipe: [Int32] = [-1, -1]
        if !Sanitizers.areOn {
            let result = unsafe csandbox_pipe(&pipe)
            guard result == 0 else {
                csandbox_close(ends[0])
                throw Failure(code: -result)
            }
        }
        defer { if pipe[1] >= 0 { csandbox_close(pipe[1]) } }
        let surroundings = ProcessInfo.processInfo.environment
        let environment =
            ["LANG=C.UTF-8", "HOME=/nonexistent"]
            + Self.passedOn.compactMap { name in surroundings[name].map { "\(name)=\($0)" } }
        let words =
            ["rostrum", "transcoder", "\(getpid())", "\(settings.niceness)"]
            + (settings.mustBeConfined ? [] : [TranscoderProcess.unconfinedArgument])
        let process = unsafe Self.withStrings(words) { arguments in
            unsafe Self.withStrings(environment) { environment in
                unsafe csandbox_spawn(settings.executable, arguments, environment, ends[1], memory, pipe[1])
            }
        }
        guard process > 0 else {
            csandbox_close(ends[0])
            if pipe[0] >= 0 { csandbox_close(pipe[0]) }
            throw Failure(code: -process)
        }
        id = process
        descriptor = ends[0]
        errors = pipe[0]
        self.register = register
    }

    deinit {
        csandbox_close(descriptor)
        if errors >= 0 { csandbox_close(errors) }
    }

    /// CPU time of the thread that decodes this, so far; of the whole process where that cannot be known.
    func cpuTime(of entry: DecodingRegister.Entry) -> Duration {
        let nanoseconds = csandbox_thread_cpu_nanoseconds(id, entry.thread)
        return .nanoseconds(nanoseconds >= 0 ? nanoseconds : csandbox_cpu_nanoseconds(id))
    }

    /// - Returns: false where there is no room now, or it is too much for one datagram.
    func sendAtOnce(_ bytes: [UInt8]) -> Bool {
        guard bytes.count <= TranscoderChannel.datagramLimit else { return false }
        return unsafe bytes.withUnsafeBytes {
            unsafe csandbox_send_at_once(descriptor, $0.baseAddress, $0.count) == Int64($0.count)
        }
    }

    func kill() {
        csandbox_kill(id)
    }

    /// Makes sure that the process has ended.
    func end() -> End {
        csandbox_shutdown(descriptor)
        kill()
        var (signal, status, nanoseconds): (Int32, Int32, Int64) = (0, 0, 0)
        _ = unsafe csandbox_ended(id, 1, &signal, &status, &nanoseconds)
        return End(signal: signal, status: status, cpuNanoseconds: nanoseconds)
    }

    private static func withStrings<Result>(
        _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var pointers = unsafe strings.map { unsafe strdup($0) }
        unsafe pointers.append(nil)
        defer { unsafe pointers.forEach { unsafe free($0) } }
        return unsafe pointers.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { preconditionFailure("an array with an element") }
            return unsafe body(base)
        }
    }
}
