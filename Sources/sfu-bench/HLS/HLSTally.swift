import Base
import Synchronization

/// What viewers by HLS saw, of one thread or of all.
struct HLSTally: Equatable, Sendable {
    var started = 0
    /// The stream was over for so many.
    var ended = 0
    /// From a viewer's first request to its first media.
    var start = LogHistogram()
    var playlists = 0
    var media = 0
    var initializations = 0
    var bytes: UInt64 = 0
    /// How old parts were when they came, by the playlist's dates.
    var arrival = LogHistogram()
    var marks = MarkTally()
    var stalls = PlaybackBuffer.Stalls()
    var rejoined = 0
    /// Answers that were none, by what was said.
    var refusals: [String: Int] = [:]

    /// Different reasons that are told apart.
    private static let reasonLimit = 20

    var requests: Int { playlists + media + initializations }

    mutating func refuse(_ reason: String, count: Int = 1) {
        let isKnown = refusals[reason] != nil || refusals.count < Self.reasonLimit
        refusals[isKnown ? reason : "others", default: 0] += count
    }

    mutating func add(_ other: HLSTally) {
        started += other.started
        ended += other.ended
        start.add(other.start)
        playlists += other.playlists
        media += other.media
        initializations += other.initializations
        bytes += other.bytes
        arrival.add(other.arrival)
        marks.add(other.marks)
        stalls.count += other.stalls.count
        stalls.nanoseconds += other.stalls.nanoseconds
        rejoined += other.rejoined
        for (reason, count) in other.refusals { refuse(reason, count: count) }
    }
}

/// What the threads of a run and its owner share.
final class HLSShared: Sendable {
    struct Sums: Sendable {
        var whole = HLSTally()
        /// While it is measured.
        var measured = HLSTally()
        /// Viewers that had nothing to show for a while, of each thread.
        var standing: [Int]
    }

    let isStopped = Atomic(false)
    let isMeasuring = Atomic(false)
    let sums: Mutex<Sums>

    init(threads: Int) {
        sums = Mutex(Sums(standing: [Int](repeating: 0, count: threads)))
    }

    /// Takes what a thread saw since it told last.
    func add(_ tally: HLSTally, standing: Int, of thread: Int) {
        let isMeasuring = isMeasuring.load(ordering: .acquiring)
        sums.withLock { sums in
            sums.whole.add(tally)
            if isMeasuring { sums.measured.add(tally) }
            sums.standing[thread] = standing
        }
    }
}
