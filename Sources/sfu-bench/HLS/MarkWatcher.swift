import Base
import Codecs
import Wire

/// Decodes what one viewer loads, and tells how old the pictures are when they are shown, by the marks in them.
final class MarkWatcher {
    /// A picture that was loaded and is not shown yet.
    private struct Pending {
        /// On the buffer's time line, in nanoseconds.
        let time: Int64
        let mark: PictureMark
    }

    private var reader: FragmentReader?
    private var decoder: VideoDecoder?
    private var pending: [Pending] = []
    private var lastMark: PictureMark?
    /// Since they were taken away.
    private(set) var tally = MarkTally()

    /// Pictures that wait to be shown: a minute of them.
    private static let pendingLimit = 3_600
    /// Older ones are those of another clock.
    private static let oldest: Int64 = 600_000_000_000

    /// What follows needs this.
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

    /// - Parameter start: where it begins on the buffer's time line, in nanoseconds.
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
            // A picture that stands in for a later one is no new one.
            guard mark != lastMark, pending.count < Self.pendingLimit else { continue }
            lastMark = mark
            pending.append(Pending(time: start + frame.time, mark: mark))
        }
    }

    /// Tells of the pictures that were shown by now.
    /// - Parameter wall: nanoseconds since 1970.
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

/// What was seen in decoded pictures.
struct MarkTally: Equatable, Sendable {
    /// From making a picture to showing it, in nanoseconds.
    var latency = LogHistogram()
    /// Pictures without a mark.
    var unmarked = 0
    /// Pictures whose mark is of no clock that agrees with ours.
    var foreign = 0
    /// Frames that showed nothing.
    var undecoded = 0
    /// Segments, parts and their beginnings that were not understood.
    var unreadable = 0

    mutating func add(_ other: MarkTally) {
        latency.add(other.latency)
        unmarked += other.unmarked
        foreign += other.foreign
        undecoded += other.undecoded
        unreadable += other.unreadable
    }
}
