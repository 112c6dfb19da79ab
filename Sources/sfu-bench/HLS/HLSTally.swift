import Base
import Synchronization

/// Counters of the HLS viewers of one thread, or of all threads.
struct HLSTally: Equatable, Sendable {
    var started = 0
    /// Viewers whose stream has ended.
    var ended = 0
    /// From a viewer's first request to its first media, in nanoseconds.
    var start = LogHistogram()
    var playlists = 0
    var media = 0
    var initializations = 0
    var bytes: UInt64 = 0
    /// Age of parts when they arrived, by the playlist's dates, in nanoseconds.
    var arrival = LogHistogram()
    var marks = MarkTally()
    var stalls = PlaybackBuffer.Stalls()
    var rejoined = 0
    /// Failed requests, by reason.
    var refusals: [String: Int] = [:]

    /// The most reasons that are counted separately; the rest are `others`.
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

/// State that the threads of a run share with the task that controls it.
final class HLSShared: Sendable {
    struct Sums: Sendable {
        /// Since the start of the run.
        var whole = HLSTally()
        /// While `isMeasuring` was true.
        var measured = HLSTally()
        /// Viewers without anything to show, by thread, as of its latest report.
        var standing: [Int]
    }

    let isStopped = Atomic(false)
    let isMeasuring = Atomic(false)
    let sums: Mutex<Sums>

    init(threads: Int) {
        sums = Mutex(Sums(standing: [Int](repeating: 0, count: threads)))
    }

    /// Adds what a thread saw since its previous report.
    func add(_ tally: HLSTally, standing: Int, of thread: Int) {
        let isMeasuring = isMeasuring.load(ordering: .acquiring)
        sums.withLock { sums in
            sums.whole.add(tally)
            if isMeasuring { sums.measured.add(tally) }
            sums.standing[thread] = standing
        }
    }
}
