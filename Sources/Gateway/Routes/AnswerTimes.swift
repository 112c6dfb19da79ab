import Base
import Net
import Node
import Synchronization

/// Histograms of how long it took to answer requests for sessions, refusals not included.
final class AnswerTimes: Sendable {
    private let times = Mutex(
        (published: DurationHistogram(.joins), played: DurationHistogram(.joins)))

    /// Records an answer given now.
    /// - Parameter start: when the request reached its handler.
    func note(_ purpose: SessionRequest.Purpose, since start: MonotonicTime) {
        let duration = MonotonicClock.now().nanoseconds(since: start)
        times.withLock { times in
            switch purpose {
            case .publish, .stage: times.published.add(duration)
            case .play, .feed: times.played.add(duration)
            }
        }
    }

    /// The histograms as of now.
    var copy: (published: DurationHistogram, played: DurationHistogram) { times.withLock { $0 } }
}
