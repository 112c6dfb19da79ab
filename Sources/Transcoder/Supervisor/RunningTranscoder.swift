import Base
import CSandbox
import Foundation

/// One life of the process, and the server's end of its socket.
///
/// The descriptors are closed with the last reference, so that nothing is written to a descriptor that has been
/// reused. `end` reaps the process and must be called exactly once; until then its ID cannot be reused.
final class RunningTranscoder: Sendable {
    /// The process could not be started.
    struct Failure: Error {
        /// The kernel's `errno`.
        let code: Int32

        var text: String { unsafe String(cString: strerror(code)) }
    }

    /// How the process ended.
    struct End: Sendable {
        /// The signal that killed it; 0 without one.
        let signal: Int32
        let status: Int32
        let cpuNanoseconds: Int64
    }

    /// Process ID.
    let id: Int32
    /// The server's end of the socket.
    let descriptor: Int32
    /// Reads the process's standard error; -1 if the process shares the server's.
    let errors: Int32
    let register: DecodingRegister

    /// Variables of the server's environment that the process inherits; none may contain a secret.
    private static let passedOn = ["LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "FONTCONFIG_FILE"]

    /// Starts the process.
    ///
    /// The calling thread has to live as long as the process: the kernel ends the process with the thread that started
    /// it.
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
        // Sanitizers write their findings to the server's standard error, unmodified.
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

    /// CPU time that an entry's thread has used so far; of the whole process if that is unknown.
    func cpuTime(of entry: DecodingRegister.Entry) -> Duration {
        let nanoseconds = csandbox_thread_cpu_nanoseconds(id, entry.thread)
        return .nanoseconds(nanoseconds >= 0 ? nanoseconds : csandbox_cpu_nanoseconds(id))
    }

    /// Sends without blocking.
    /// - Returns: false if the socket is full, or the bytes exceed one datagram.
    func sendAtOnce(_ bytes: [UInt8]) -> Bool {
        guard bytes.count <= TranscoderChannel.datagramLimit else { return false }
        return unsafe bytes.withUnsafeBytes {
            unsafe csandbox_send_at_once(descriptor, $0.baseAddress, $0.count) == Int64($0.count)
        }
    }

    /// Kills the process; `end` still has to be called.
    func kill() {
        csandbox_kill(id)
    }

    /// Kills the process if necessary, and waits for its end.
    func end() -> End {
        csandbox_shutdown(descriptor)
        kill()
        var (signal, status, nanoseconds): (Int32, Int32, Int64) = (0, 0, 0)
        _ = unsafe csandbox_ended(id, 1, &signal, &status, &nanoseconds)
        return End(signal: signal, status: status, cpuNanoseconds: nanoseconds)
    }

    /// Passes strings to C as an array of pointers that ends with null.
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
