import Base
import Foundation
import Net
import Synchronization

/// Asks a server whether it is ready, again and again, until it is stopped.
///
/// On a thread of its own: beside hundreds of requests for sessions a task would wait for its turn, and measure that.
final class ReadinessWatch: Sendable {
    private struct State {
        var outage = Outage()
        /// By the last answer.
        var isReady = true
        var isStopped = false
    }

    private let url: String
    private let state = Mutex(State())
    /// Between an answer and the next question, in seconds.
    private static let pause = 0.02
    /// A server that does not answer for as long is not ready, in milliseconds.
    private static let patience = 1_000
    /// Of an answer, in bytes.
    private static let limit = 65_536

    init(_ url: URL) { self.url = url.absoluteString }

    var seen: Outage { state.withLock { $0.outage } }

    var isReady: Bool { state.withLock { $0.isReady } }

    func sessionEnded(at now: MonotonicTime) { state.withLock { $0.outage.sessionEnded(at: now) } }

    /// Begins to ask.
    func start() {
        let thread = Thread { [self] in run() }
        thread.name = "readiness"
        thread.start()
    }

    func stop() { state.withLock { $0.isStopped = true } }

    private func run() {
        guard let fetcher = try? HTTPFetcher(connections: 1) else { return }
        while !state.withLock({ $0.isStopped }) {
            ask(fetcher)
            Thread.sleep(forTimeInterval: Self.pause)
        }
    }

    private func ask(_ fetcher: HTTPFetcher) {
        let asked = MonotonicClock.now()
        var status: Int?
        guard fetcher.get(url, number: 0, header: nil, limit: Self.limit, keepsBytes: false) else {
            return note(false, asked: asked)
        }
        // An answer that is too late is waited for, so that there is never more than one question.
        while status == nil, !state.withLock({ $0.isStopped }) {
            fetcher.wait(milliseconds: Self.patience / 10) { status = $1.status }
            let waited = MonotonicClock.now().nanoseconds(since: asked) / 1_000_000
            if status == nil, waited > Self.patience { note(false, asked: asked) }
        }
        if let status { note(status == 200, asked: asked) }
    }

    private func note(_ isReady: Bool, asked: MonotonicTime) {
        state.withLock { state in
            state.isReady = isReady
            state.outage.take(isReady: isReady, asked: asked, answered: MonotonicClock.now())
        }
    }
}
