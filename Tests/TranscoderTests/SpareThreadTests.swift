import Dispatch
import Synchronization
import Testing

@testable import Transcoder

@Suite struct `Time that is to spare` {
    @Test func `hands out all that was made in it, once`() async {
        let results = AsyncStream.makeStream(of: Int.self)
        for number in 0..<50 {
            SpareThread.shared.run {
                number
            } then: {
                results.continuation.yield($0)
            }
        }
        var seen: [Int] = []
        for await result in results.stream {
            seen.append(result)
            if seen.count == 50 { break }
        }
        #expect(seen.sorted() == Array(0..<50))
    }

    @Test func `is not waited for without end, nor what was begun in it`() async {
        let results = AsyncStream.makeStream(of: Int.self)
        let attempts = Attempts()
        SpareThread.shared.run { () -> Int in
            let attempt = attempts.begin()
            // The first one has no turn until the second one has come to an end.
            if attempt == 1 { attempts.waitForEnd() }
            return attempt
        } then: { attempt in
            attempts.end()
            results.continuation.yield(attempt)
        }
        for await result in results.stream {
            #expect(result == 2)
            break
        }
    }
}

/// Counts how often something was begun.
private final class Attempts: Sendable {
    private let count = Mutex(0)
    private let ended = DispatchSemaphore(value: 0)

    func begin() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }

    func end() { ended.signal() }

    func waitForEnd() { ended.wait() }
}
