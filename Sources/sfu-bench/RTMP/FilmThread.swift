import Base
import Codecs
import Foundation
import Net
import Peer
import Restream
import Synchronization

/// A thread that generates one film in real time, for any number of publishers.
final class FilmThread: Sendable {
    /// What was generated so far.
    struct Made: Equatable, Sendable {
        var frames = 0
        var keyFrames = 0
        /// How late pictures and sound were made, in nanoseconds.
        var lateness = LogHistogram()
        /// Why the thread has ended; nil while it runs, and if it was stopped.
        var failure: String?
    }

    private final class State: Sendable {
        let isStopped = Atomic(false)
        let made = Mutex(Made())
    }

    private let state = State()
    private let thread: NativeThread

    /// Seconds between key frames unless the user chose; RTMP and SRT have no request for them.
    static let keyFrameInterval = 2.0
    /// A thread that was delayed for longer restarts the film, instead of catching up.
    private static let longestDebt = Duration.seconds(1)

    /// - Parameter take: called on the thread with everything that is made. The format comes first, and again whenever
    ///   the film is restarted.
    init(_ media: MediaOptions, cpu: Int?, take: @escaping @Sendable (RestreamMedia) -> Void) throws(NetError)
    {
        let state = state
        thread = try NativeThread(name: Generator.threadPrefix + "film", cpu: cpu) {
            do {
                while !state.isStopped.load(ordering: .acquiring) { try Self.show(media, state, take) }
            } catch {
                state.made.withLock { $0.failure = "\(error)" }
            }
        }
    }

    var made: Made { state.made.withLock { $0 } }

    /// Stops the thread and waits for it.
    func stop() {
        state.isStopped.store(true, ordering: .releasing)
        thread.join()
    }

    /// Generates a film until the thread is stopped or too far behind.
    private static func show(
        _ media: MediaOptions, _ state: State, _ take: (RestreamMedia) -> Void
    ) throws {
        let interval = media.keyFrameInterval > 0 ? media.keyFrameInterval : keyFrameInterval
        let began = MonotonicClock.now()
        let clock = WallClock(unixNanoseconds: Int64(Date().timeIntervalSince1970 * 1e9), at: began)
        let film = try MarkedFilm(media, keyFrameInterval: interval, from: began)
        take(.format(film.format))
        var told = (frames: 0, keyFrames: 0)
        while !state.isStopped.load(ordering: .acquiring) {
            let (due, now) = (film.due, MonotonicClock.now())
            guard due <= now else {
                // At most 100 ms, so that a stop is noticed soon.
                usleep(UInt32(clamping: min(due.nanoseconds(since: now) / 1_000 + 1, 100_000)))
                continue
            }
            guard due + longestDebt > now else { return }
            if let sample = try film.next({ clock.unixNanoseconds(at: $0) }) { take(.sample(sample)) }
            let (frames, keyFrames) = (film.frames - told.frames, film.keyFrames - told.keyFrames)
            told = (film.frames, film.keyFrames)
            state.made.withLock { made in
                made.frames += frames
                made.keyFrames += keyFrames
                made.lateness.add(now.nanoseconds(since: due))
            }
        }
    }
}
