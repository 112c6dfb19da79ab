import Base
import Codecs
import Wire

/// A picture that is passed on as its publisher encoded it.
struct PassedFrame {
    /// As decoders take it, H.264 and HEVC with start codes.
    let bytes: [UInt8]
    /// What a decoder has to know from here on; nil but in key frames.
    let video: Muxer.Video?
    /// When it was captured; on a time line, when it is shown.
    let time: MonotonicTime

    var isKeyFrame: Bool { video != nil }
}

/// One time line of a packaging whose pictures are their publisher's own, as they came.
///
/// Parts are as long as encoded ones, whatever the pictures' times are: a part has the pictures that begin within it,
/// and sound alone where the last picture stands for longer. Segments end where a key frame comes, not before 0.8 s
/// are over and never later than playlists promise. Pictures that are shown in another order than they come stay in
/// that in which they come, and have the places of that in which they are shown.
final class PassedTimeline {
    /// Why it cannot go on.
    enum Ending: Error, Equatable {
        /// No key frame came in time.
        case segment
        /// No picture came for too long, or too many came at once.
        case pause
        /// The publisher sends more than viewers by HLS should have to take.
        case bitrate
    }

    /// In milliseconds: a longer one would be rounded to more than the target duration.
    static let longestSegment = PackagingTiming.segmentMilliseconds + 450
    /// In milliseconds; shorter than `firstKeyFrameAge`, so that whatever was asked for ends a segment, however fast it
    /// comes: the next one may be more than two seconds later.
    private static let shortestSegment = 800
    /// Pictures may come so much later than the sound of their time; in microseconds.
    private static let patience: Int64 = 1_200_000
    /// In bits a second, over a segment.
    static let bitrateLimit = 8_000_000
    /// A picture stands no longer, in microseconds: who encodes shows it again and again.
    private static let longestPicture: Int64 = 1_500_000
    /// Of what waits for its sound.
    private static let frameLimit = 1_000
    /// A publisher is asked for a key frame when one came so long ago, and again after a while; in microseconds.
    private static let keyFrameAge: Int64 = 1_400_000
    /// Players that know no parts wait for the first segment.
    private static let firstKeyFrameAge: Int64 = 900_000
    private static let keyFramePatience: Int64 = 400_000

    private let writer: SegmentWriter
    private let header: Muxer.Video
    private let timing: PackagingTiming
    /// How long after its capture something is shown.
    private let delay: Duration
    /// Those whose place is not known, because one that is shown earlier may follow.
    private var unplaced: [(frame: PassedFrame, shown: Int64)] = []
    /// When those are shown, in order.
    private var places: [Int64] = []
    /// Those whose end is not known, or whose sound has not come; each with its place, and when it is shown.
    private var waiting: [(frame: PassedFrame, time: Int64, shown: Int64)] = []
    /// Of the last picture that has a place, in microseconds; the first one's is 0.
    private var lastTime: Int64 = -1_000
    /// Of the last key frame that a segment begins with, and of the last wish for one.
    private var (keyFrameTime, wishTime): (Int64, Int64) = (0, 0)
    /// Of the last picture that was written.
    private var pictureEnd: Int64 = 0
    /// In milliseconds.
    private var (partStart, segmentStart) = (0, 0)
    private var startsSegment = true
    /// Whether the part under way has a picture.
    private var hasPicture = false
    private var segmentBytes = 0

    /// - Parameters:
    ///   - first: a key frame.
    ///   - delay: how long after its capture something is shown.
    init(
        _ first: PassedFrame, _ header: Muxer.Video, delay: Duration, _ request: PackagingRequest
    ) throws {
        self.header = header
        timing = request.timing
        self.delay = delay
        writer = try SegmentWriter(header, framesPerSecond: nil, from: first.time, request)
        unplaced = [(first, 0)]
        places = [0]
        try place(all: false)
    }

    func takeReports() -> [PackagingReport] { writer.takeReports() }

    /// Whether a picture can follow: key frames with other parameter sets begin another time line.
    func takes(_ frame: PassedFrame) -> Bool { frame.video == nil || frame.video == header }

    func append(_ frame: PassedFrame) throws {
        let shown = frame.time.nanoseconds(since: writer.zero) / 1_000
        // Nothing that follows it is shown before it.
        if frame.isKeyFrame { try place(all: true) }
        unplaced.append((frame, shown))
        places.insert(shown, at: (places.lastIndex { $0 <= shown } ?? -1) + 1)
        try place(all: false)
        guard waiting.count <= Self.frameLimit else { throw Ending.pause }
    }

    /// Gives pictures their places, in the order in which they came, where nothing that is to come is shown earlier.
    private func place(all: Bool) throws {
        while let (frame, shown) = unplaced.first, all || places.count > header.reordered {
            unplaced.removeFirst()
            // Clocks are corrected bit by bit: a picture is not before the last one, but never long after its time
            // either.
            let time = max(places.removeFirst(), lastTime + 1_000)
            guard time <= lastTime + Self.longestPicture else { throw Ending.pause }
            lastTime = time
            if frame.isKeyFrame, time >= keyFrameTime + Int64(Self.shortestSegment) * 1_000 {
                keyFrameTime = time
            }
            // In order it is shown where it is placed.
            waiting.append((frame, time, header.reordered == 0 ? time : shown))
        }
    }

    /// - Parameter tick: when the first of it is heard.
    func append(_ block: [Float], at tick: MonotonicTime) throws {
        try writer.append(block, at: tick)
        try writeDue()
        guard writer.soundEnd <= lastTime + Self.patience else { throw Ending.pause }
    }

    /// Whether a publisher should be asked for a key frame now.
    func takeKeyFrameWish() -> Bool {
        let age = keyFrameTime == 0 ? Self.firstKeyFrameAge : Self.keyFrameAge
        guard lastTime >= keyFrameTime + age, lastTime >= wishTime + Self.keyFramePatience else {
            return false
        }
        wishTime = lastTime
        return true
    }

    /// Makes a part of what is there: nothing more comes.
    func end() throws {
        guard hasPicture else { return }
        let latest = partStart + timing.partMilliseconds
        try endPart(at: min(max(Int(pictureEnd / 1_000), partStart + 1), latest), endsSegment: true)
    }

    // MARK: Pictures

    /// Writes the pictures whose end is known, and whose sound is there.
    private func writeDue() throws {
        var written = 0
        defer { waiting.removeFirst(written) }
        while written + 1 < waiting.count, waiting[written].time <= writer.soundEnd {
            let (frame, time, shown) = waiting[written]
            // After a pause, or where few pictures come in a second: it would have to be shown before it is decoded.
            guard shown - time >= -writer.lead else { throw Ending.pause }
            try endParts(before: frame, at: Int((time + 500) / 1_000))
            try writer.write(
                frame.bytes, at: time, shownAfter: shown - time, duration: waiting[written + 1].time - time,
                isKeyFrame: frame.isKeyFrame)
            hasPicture = true
            pictureEnd = waiting[written + 1].time
            segmentBytes += frame.bytes.count
            written += 1
        }
    }

    /// - Parameter time: of the picture, in milliseconds.
    private func endParts(before frame: PassedFrame, at time: Int) throws {
        guard time < segmentStart + Self.longestSegment else { throw Ending.segment }
        let isEdge = frame.isKeyFrame && time >= segmentStart + Self.shortestSegment
        while time >= partStart + timing.partMilliseconds {
            let end = partStart + timing.partMilliseconds
            try endPart(at: end, endsSegment: isEdge && time < end + timing.partMilliseconds)
        }
        guard isEdge else { return }
        if hasPicture { try endPart(at: max(time, partStart + 1), endsSegment: true) }
        guard segmentBytes * 8 / max(partStart - segmentStart, 1) <= Self.bitrateLimit / 1_000 else {
            throw Ending.bitrate
        }
        (segmentStart, segmentBytes, startsSegment) = (partStart, 0, true)
    }

    /// - Parameter time: in milliseconds.
    private func endPart(at time: Int, endsSegment: Bool) throws {
        try writer.endPart(
            at: Int64(time) * 1_000, milliseconds: time - partStart, startsSegment: startsSegment,
            endsSegment: endsSegment, captured: writer.zero + .milliseconds(Int64(partStart)) - delay)
        (partStart, startsSegment, hasPicture) = (time, false, false)
    }
}
