import Dispatch
import Glibc
import Synchronization

/// What the program is asked by signals.
final class Signals {
    enum Request: Sendable {
        /// SIGTERM and SIGINT.
        case end
        /// SIGHUP: to read anew what can change while it runs; an end if it comes of a terminal that has been closed.
        case reload
    }

    /// The last one counts: an end replaces a reload that nobody has begun.
    ///
    /// A second signal that asks for the end ends the program at once.
    let requests: AsyncStream<Request>
    /// Kept, because a source that is let go is silent.
    private var sources: [any DispatchSourceSignal] = []

    init() {
        let (requests, continuation) = AsyncStream.makeStream(
            of: Request.self, bufferingPolicy: .bufferingNewest(1))
        self.requests = requests
        let queue = DispatchQueue(label: "signals")
        let ends = Counter()
        let hadTerminal = isatty(STDIN_FILENO) == 1
        for number in [SIGTERM, SIGINT, SIGHUP] {
            // The default would end the program before the source hears of it.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                // Nobody could end it any more by typing ^C.
                let hasLostTerminal = hadTerminal && isatty(STDIN_FILENO) == 0
                guard number != SIGHUP || hasLostTerminal else {
                    if ends.value == 0 { continuation.yield(.reload) }
                    return
                }
                if ends.next() > 1 { _exit(128 + number) }
                continuation.yield(.end)
            }
            source.resume()
            sources.append(source)
        }
    }

    private final class Counter: Sendable {
        private let count = Atomic<Int>(0)

        var value: Int { count.load(ordering: .relaxed) }
        func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
    }
}
