import Base
import Net
import Node
import Synchronization

/// How long requests for sessions took to be answered with one.
final class AnswerTimes: Sendable {
    private let times = Mutex(
        (published: DurationHistogram(.joins), played: DurationHistogram(.joins)))

    func note(_ purpose: SessionRequest.Purpose, since start: MonotonicTime) {
        let duration = MonotonicClock.now().nanoseconds(since: start)
        times.withLock { times in
            switch purpose {
            case .publish, .stage: times.published.add(duration)
            case .play, .feed: times.played.add(duration)
            }
        }
    }

    /// What was counted until now.
    var copy: (published: DurationHistogram, played: DurationHistogram) { times.withLock { $0 } }
}
