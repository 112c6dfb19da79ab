import Base
import Foundation
import Net
import Synchronization

/// Checks repeatedly whether a server is ready, until it is stopped.
///
/// It has a thread of its own: a task would have to wait behind hundreds of requests for sessions, and measure that
/// wait.
final class ReadinessWatch: Sendable {
    private struct State {
        var outage = Outage()
        /// According to the latest check.
        var isReady = true
        var isStopped = false
    }

    private let url: String
    private let state = Mutex(State())
    /// Between a response and the next check, in seconds.
    private static let pause = 0.02
    /// In milliseconds; a server that does not respond for longer is not ready.
    private static let patience = 1_000
    /// Of a response, in bytes.
    private static let limit = 65_536

    init(_ url: URL) { self.url = url.absoluteString }

    /// A copy of the outage as known so far.
    var seen: Outage { state.withLock { $0.outage } }

    var isReady: Bool { state.withLock { $0.isReady } }

    func sessionEnded(at now: MonotonicTime) { state.withLock { $0.outage.sessionEnded(at: now) } }

    /// Starts the checks.
    func start() {
        let thread = Thread { [self] in run() }
        thread.name = "readiness"
        thread.start()
    }

    /// Ends the thread after its current check, without waiting for it.
    func stop() { state.withLock { $0.isStopped = true } }

    private func run() {
        guard let fetcher = try? HTTPFetcher(connections: 1) else { return }
        while !state.withLock({ $0.isStopped }) {
            ask(fetcher)
            Thread.sleep(forTimeInterval: Self.pause)
        }
    }

    /// Performs one check.
    private func ask(_ fetcher: HTTPFetcher) {
        let asked = MonotonicClock.now()
        var status: Int?
        guard fetcher.get(url, number: 0, header: nil, limit: Self.limit, keepsBytes: false) else {
            return note(false, asked: asked)
        }
        // A late response is still awaited, so that there is never more than one request.
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
