import Base
import HLS
import Recordings
import Stage
import Transcoder

/// The packaging of one rendition of a stream: its transcoder job, its playlist, and the requests that wait for it.
///
/// It lives while a player watches by HLS or a listener takes its samples.
struct Packaging {
    /// The stream and rendition that are packaged.
    struct Key: Hashable {
        var stream: StreamID
        var rendition: PackagedRendition
    }

    /// A suspended request that waits for a part, segment or file.
    struct Waiter {
        let wish: Wish
        /// When the request is resumed although its wish is not fulfilled.
        let deadline: MonotonicTime
        /// Resumed with the reason why there will be nothing, or with nil to make the request look again.
        let continuation: CheckedContinuation<HLSRefusal?, Never>
    }

    /// What a request waits for.
    enum Wish {
        /// The first part: it tells the codecs and the picture size, which the multivariant playlist contains.
        case beginning
        /// A complete segment: players without support for parts start with nothing less.
        case segment
        /// The segment or part of a blocking playlist request.
        case position(PlaylistQuery.Position)
        /// A file that the playlist announced by its name.
        case file(String)
    }

    var playlist: LivePlaylist
    var inputs: ProgrammeInputs
    /// The transcoder's job; nil while none runs, such as between two lives of the transcoder.
    var job: JobID?
    /// The desk's number of the latest job, by which it ignores reports of earlier ones.
    var number: UInt64 = 0
    /// When the desk asks the transcoder for a job again; nil while a job runs.
    var retryAt: MonotonicTime?
    /// The time of the last HLS request; nil while no player watches by HLS and only listeners take samples.
    var lastRequest: MonotonicTime?
    /// Whether a player has loaded this rendition's own playlist, and not only the multivariant playlist.
    var isLoaded = false
    /// When the stream ended; nil before.
    var endedAt: MonotonicTime?
    /// Whether video is passed on as its publisher encoded it.
    var isPassed = false
    /// The format of the current samples; nil before the first picture.
    var format: PackagingReport.Format?
    /// The listeners to samples, by the number that each of them registered with.
    var listeners: [UInt64: PackagingDesk.Listener] = [:]
    var waiters: [Waiter] = []

    /// Makes a random prefix of 40 bits for file names, so that caches never confuse two packagings of one stream.
    static func makeTag() -> String {
        let alphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")
        return String((0..<8).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }

    /// Writes the segments that were completed to the shelf, and removes those that left the window.
    /// - Parameter stored: called with the name of each segment that is on disk, on the shelf's queue.
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

    /// Whether the packaging must be kept for viewers who go back, although no player requests anything.
    ///
    /// True while the stream is live with a window, and for the length of the window after its end.
    func isKept(at now: MonotonicTime) -> Bool {
        guard playlist.window > 0 else { return false }
        return endedAt.map { now < $0 + .milliseconds(playlist.window) } ?? true
    }

    /// Whether a request can be answered, if only with a refusal.
    func satisfies(_ wish: Wish) -> Bool {
        // Nothing more will be made: no request may wait for it.
        if playlist.hasEnded { return true }
        return switch wish {
        case .beginning: playlist.codecs != nil
        case .segment: playlist.hasCompleteSegment
        case .position(let position): playlist.standing(of: position) != .awaited
        case .file(let name): playlist.file(named: name).standing != .awaited
        }
    }

    /// The playlist, if it satisfies a wish; nil if the request has to wait.
    func playlist(when wish: Wish) -> LivePlaylist? { satisfies(wish) ? playlist : nil }

    /// Removes and returns the requests whose wish is fulfilled or whose deadline has passed.
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
    /// The timing as playlists announce it.
    var ofPlaylists: LivePlaylist.Timing {
        LivePlaylist.Timing(
            part: partMilliseconds, segment: Self.segmentMilliseconds, partsPerSegment: partsPerSegment)
    }
}

extension Moment {
    /// Converts a monotonic time within the last minute to wall time.
    ///
    /// Older and future times are clamped, so that an odd capture time cannot move a playlist's dates far.
    func date(of time: MonotonicTime) -> WallTime {
        let age = min(max(elapsed.nanoseconds(since: time) / 1_000_000, 0), 60_000)
        return WallTime(milliseconds: wall.milliseconds - age)
    }
}
