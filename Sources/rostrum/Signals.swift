import Dispatch
import Glibc
import Synchronization

/// The signals that ask the program to end.
final class Signals {
    /// One element for the first signal; a second signal ends the program at once.
    let requests: AsyncStream<CInt>
    /// Kept, because a source that is let go is silent.
    private var sources: [any DispatchSourceSignal] = []

    init() {
        let (requests, continuation) = AsyncStream.makeStream(
            of: CInt.self, bufferingPolicy: .bufferingOldest(1))
        self.requests = requests
        let queue = DispatchQueue(label: "signals")
        let count = Counter()
        for number in [SIGTERM, SIGINT] {
            // The default would end the program before the source hears of it.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                if count.next() > 1 { _exit(128 + number) }
                continuation.yield(number)
            }
            source.resume()
            sources.append(source)
        }
    }

    private final class Counter: Sendable {
        private let value = Atomic<Int>(0)

        func next() -> Int { value.wrappingAdd(1, ordering: .relaxed).newValue }
    }
}
