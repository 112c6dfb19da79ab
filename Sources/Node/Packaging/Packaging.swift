import Base
import HLS
import Recordings
import Stage
import Transcoder

/// The encode of one rendition of a stream, while somebody watches it by HLS, or something else takes it.
struct Packaging {
    /// What it is of.
    struct Key: Hashable {
        var stream: StreamID
        var rendition: PackagedRendition
    }

    /// A request that waits for something to be made.
    struct Waiter {
        let wish: Wish
        let deadline: MonotonicTime
        /// Is given why there will be nothing; nil where it may look.
        let continuation: CheckedContinuation<HLSRefusal?, Never>
    }

    /// What a request waits for.
    enum Wish {
        /// The first part, which tells what players must know before they begin.
        case beginning
        /// A whole segment: players that know no parts take nothing less.
        case segment
        case position(PlaylistQuery.Position)
        case file(String)
    }

    var playlist: LivePlaylist
    var inputs: ProgrammeInputs
    var job: JobID?
    /// Of the job, as the desk counts all of them.
    var number: UInt64 = 0
    /// When the transcoder is asked again.
    var retryAt: MonotonicTime?
    /// By HLS; nil where nobody watches by it.
    var lastRequest: MonotonicTime?
    /// Whether its own playlist was asked for, and not only the one that names it.
    var isLoaded = false
    /// When the stream ended; nil before.
    var endedAt: MonotonicTime?
    /// Whether pictures are passed on as their publisher encoded them.
    var isPassed = false
    /// How what is encoded now is encoded; nil before the first picture.
    var format: PackagingReport.Format?
    /// Who takes samples, by names of their own.
    var listeners: [UInt64: PackagingDesk.Listener] = [:]
    var waiters: [Waiter] = []

    /// 40 random bits: the names of one packaging are never another's.
    static func makeTag() -> String {
        let alphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")
        return String((0..<8).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }

    /// Has what is complete written, and what nobody can go back to any more removed.
    /// - Parameter stored: hears of each that is on the disk, by its name.
    mutating func shelve(
        on shelf: SegmentShelf, _ stream: StreamID, at now: MonotonicTime,
        _ stored: @escaping @Sendable (String) -> Void
    ) {
        for segment in playlist.takeFinished() {
            let name = segment.name
            shelf.write(name, segment.bytes, of: stream) { stored(name) }
        }
        shelf.remove(playlist.takeForgotten(), of: stream, at: now)
    }

    /// Whether viewers can go back in it, also where nobody does.
    func isKept(at now: MonotonicTime) -> Bool {
        guard playlist.window > 0 else { return false }
        return endedAt.map { now < $0 + .milliseconds(playlist.window) } ?? true
    }

    /// Whether there is an answer, be it that there will be none.
    func satisfies(_ wish: Wish) -> Bool {
        if playlist.hasEnded { return true }
        return switch wish {
        case .beginning: playlist.codecs != nil
        case .segment: playlist.hasCompleteSegment
        case .position(let position): playlist.standing(of: position) != .awaited
        case .file(let name): playlist.file(named: name).standing != .awaited
        }
    }

    /// What there is for a wish; nil where it has to be waited for.
    func playlist(when wish: Wish) -> LivePlaylist? { satisfies(wish) ? playlist : nil }

    /// Those whose wish is fulfilled, or who waited long enough.
    mutating func takeWaiters(at now: MonotonicTime) -> [Waiter] {
        var (done, left): ([Waiter], [Waiter]) = ([], [])
        for waiter in waiters {
            if now >= waiter.deadline || satisfies(waiter.wish) {
                done.append(waiter)
            } else {
                left.append(waiter)
            }
        }
        waiters = left
        return done
    }
}

extension PackagingTiming {
    /// As playlists announce it.
    var ofPlaylists: LivePlaylist.Timing {
        LivePlaylist.Timing(
            part: partMilliseconds, segment: Self.segmentMilliseconds, partsPerSegment: partsPerSegment)
    }
}

extension Moment {
    /// A moment of the last minute on the clock of days.
    func date(of time: MonotonicTime) -> WallTime {
        let age = min(max(elapsed.nanoseconds(since: time) / 1_000_000, 0), 60_000)
        return WallTime(milliseconds: wall.milliseconds - age)
    }
}
