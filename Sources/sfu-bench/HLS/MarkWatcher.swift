import Base
import Codecs
import Wire

/// Decodes what one viewer loads, and measures how old pictures are when they are shown, by the marks in them.
final class MarkWatcher {
    /// A picture that was decoded but not shown yet.
    private struct Pending {
        /// When to show it, on the buffer's time line, in nanoseconds.
        let time: Int64
        let mark: PictureMark
    }

    private var reader: FragmentReader?
    private var decoder: VideoDecoder?
    private var pending: [Pending] = []
    /// Of the previous picture, to recognize one that is repeated.
    private var lastMark: PictureMark?
    /// Counts since the last `takeTally`.
    private(set) var tally = MarkTally()

    /// The most pictures that wait to be shown: a minute of them at 60 a second.
    private static let pendingLimit = 3_600
    /// In nanoseconds; a larger age comes from a clock that disagrees with ours.
    private static let oldest: Int64 = 600_000_000_000

    /// Prepares for media of a new initialization segment.
    func begin(_ initialization: [UInt8]) {
        reader = nil
        decoder = nil
        do {
            reader = try FragmentReader(initialization: initialization)
            decoder = try VideoDecoder(.h264)
        } catch {
            tally.unreadable += 1
        }
    }

    /// Decodes a part or a segment.
    /// - Parameter start: where it starts on the buffer's time line, in nanoseconds.
    func take(_ media: [UInt8], at start: Int64) {
        guard let reader, let decoder else { return }
        guard let frames = try? reader.frames(of: media) else {
            tally.unreadable += 1
            return
        }
        for frame in frames {
            guard let picture = try? decoder.decode(frame.bytes) else {
                tally.undecoded += 1
                continue
            }
            guard let mark = PictureMark(in: picture) else {
                tally.unmarked += 1
                continue
            }
            // A repeated picture, which stands in for a later one, does not count.
            guard mark != lastMark, pending.count < Self.pendingLimit else { continue }
            lastMark = mark
            pending.append(Pending(time: start + frame.time, mark: mark))
        }
    }

    /// Measures the pictures that have been shown by now.
    ///
    /// Their age counts at the moment at which each was due, not at the one of this call.
    /// - Parameter wall: now, in nanoseconds since 1970.
    func show(_ buffer: PlaybackBuffer, at wall: Int64) {
        let shown = pending.prefix { $0.time <= buffer.position }
        for picture in shown {
            let age = picture.mark.age(at: wall - (buffer.position - picture.time))
            guard (0...Self.oldest).contains(age) else {
                tally.foreign += 1
                continue
            }
            tally.latency.add(age)
        }
        pending.removeFirst(shown.count)
    }

    func takeTally() -> MarkTally {
        defer { tally = MarkTally() }
        return tally
    }
}

/// Counters of decoded pictures.
struct MarkTally: Equatable, Sendable {
    /// From the creation of a picture to its display, in nanoseconds.
    var latency = LogHistogram()
    /// Pictures without a mark.
    var unmarked = 0
    /// Pictures whose mark comes from a clock that disagrees with ours.
    var foreign = 0
    /// Frames that the decoder refused.
    var undecoded = 0
    /// Initialization segments, segments and parts that could not be parsed.
    var unreadable = 0

    mutating func add(_ other: MarkTally) {
        latency.add(other.latency)
        unmarked += other.unmarked
        foreign += other.foreign
        undecoded += other.undecoded
        unreadable += other.unreadable
    }
}
