import Dispatch
import Glibc
import Synchronization

/// Signals as requests to the program.
///
/// Dispatch sources receive them on a queue, because almost nothing may be called inside a signal handler.
/// - Source: signal-safety(7).
final class Signals {
    enum Request: Sendable {
        /// SIGTERM or SIGINT: shut down.
        case end
        /// SIGHUP: read the configuration again. If the terminal that started the program has been closed, SIGHUP
        /// requests the end instead.
        case reload
    }

    /// Only the latest pending request is kept: an end replaces a reload that has not begun.
    ///
    /// A second signal that requests the end ends the process immediately.
    let requests: AsyncStream<Request>
    /// A dispatch source stops delivering when it is released, so these are kept.
    private var sources: [any DispatchSourceSignal] = []

    /// Catches SIGTERM, SIGINT and SIGHUP from now on.
    init() {
        let (requests, continuation) = AsyncStream.makeStream(
            of: Request.self, bufferingPolicy: .bufferingNewest(1))
        self.requests = requests
        let queue = DispatchQueue(label: "signals")
        let ends = Counter()
        // A service has no terminal on standard input, so for it SIGHUP always means reload.
        let hadTerminal = isatty(STDIN_FILENO) == 1
        for number in [SIGTERM, SIGINT, SIGHUP] {
            // The default action would end the process before the source receives the signal.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                // Without its terminal the program could no longer be ended by typing ^C.
                let hasLostTerminal = hadTerminal && isatty(STDIN_FILENO) == 0
                guard number != SIGHUP || hasLostTerminal else {
                    // After a requested end a reload would replace it in the stream.
                    if ends.value == 0 { continuation.yield(.reload) }
                    return
                }
                // 128 + n is the status that shells report for a process that signal n has ended.
                if ends.next() > 1 { _exit(128 + number) }
                continuation.yield(.end)
            }
            source.resume()
            sources.append(source)
        }
    }

    /// Requested ends so far; atomic only because handlers must be `Sendable`.
    private final class Counter: Sendable {
        private let count = Atomic<Int>(0)

        var value: Int { count.load(ordering: .relaxed) }
        func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
    }
}
