import Base
import Codecs
import Wire

/// A publisher's picture that is passed through unchanged.
struct PassedFrame {
    /// In the format of decoders: H.264 and HEVC with start codes.
    let bytes: [UInt8]
    /// What decoders need from here on; nil except in key frames.
    let video: Muxer.Video?
    /// When it was captured; on a time line, when it is shown.
    let time: MonotonicTime

    var isKeyFrame: Bool { video != nil }
}

/// A time line of passed pictures, with one initialization segment.
///
/// Parts are as long as encoded ones, regardless of the pictures' times: a part contains the pictures that begin
/// within it, and only sound if the last picture lasts longer. Segments end at key frames, not before 0.8 s and never
/// later than playlists promise. Reordered pictures stay in decoding order: each is decoded at one of the display
/// times, taken in ascending order.
final class PassedTimeline {
    /// Why the time line cannot continue.
    enum Ending: Error, Equatable {
        /// No key frame arrived in time.
        case segment
        /// No picture arrived for too long, or too many arrived together.
        case pause
        /// The publisher's bit rate is too high for viewers by HLS.
        case bitrate
    }

    /// Longest segment in milliseconds: its duration must round to no more than the playlist's target duration.
    static let longestSegment = PackagingTiming.segmentMilliseconds + 450
    /// Shortest segment in milliseconds.
    ///
    /// Below `firstKeyFrameAge`, so that a requested key frame always ends a segment, however soon it arrives: the
    /// next one may be more than two seconds later.
    private static let shortestSegment = 800
    /// Most microseconds by which pictures may arrive later than their sound.
    private static let patience: Int64 = 1_200_000
    /// Highest bit rate of a segment, in bits per second.
    static let bitrateLimit = 8_000_000
    /// Most bytes of the pictures in a segment: those of the longest one at `bitrateLimit`.
    ///
    /// Also bounds a part, which has to fit into a message however much a publisher sends at once.
    private static let segmentByteLimit = bitrateLimit / 8 * longestSegment / 1_000
    /// Longest duration of a picture, in microseconds; an encoder would repeat it instead.
    private static let longestPicture: Int64 = 1_500_000
    /// Most pictures that wait for their sound.
    private static let frameLimit = 1_000
    /// Age of the last key frame, in microseconds, at which another is requested.
    private static let keyFrameAge: Int64 = 1_400_000
    /// The same for the first segment, which is shorter because players without support for parts wait for it.
    private static let firstKeyFrameAge: Int64 = 900_000
    /// Time between two requests, in microseconds.
    private static let keyFramePatience: Int64 = 400_000

    private let writer: SegmentWriter
    private let header: Muxer.Video
    private let timing: PackagingTiming
    /// Delay between capture and output.
    private let delay: Duration
    /// Pictures without a decoding time, because an earlier display time may follow.
    private var unplaced: [(frame: PassedFrame, shown: Int64)] = []
    /// The display times of `unplaced` in ascending order, in microseconds.
    private var places: [Int64] = []
    /// Pictures whose end is unknown or whose sound has not arrived, with decoding and display times in microseconds.
    private var waiting: [(frame: PassedFrame, time: Int64, shown: Int64)] = []
    /// Decoding time of the last placed picture, in microseconds; that of the first is 0.
    private var lastTime: Int64 = -1_000
    /// Time of the last key frame that can begin a segment, and of the last request for one, in microseconds.
    private var (keyFrameTime, wishTime): (Int64, Int64) = (0, 0)
    /// End of the last written picture, in microseconds.
    private var pictureEnd: Int64 = 0
    /// Beginning of the current part and segment, in milliseconds.
    private var (partStart, segmentStart) = (0, 0)
    /// Whether the current part begins a segment.
    private var startsSegment = true
    /// Whether the current part contains a picture.
    private var hasPicture = false
    /// Bytes of the pictures in the current segment.
    private var segmentBytes = 0

    /// Begins a time line.
    /// - Parameters:
    ///   - first: a key frame.
    ///   - delay: between capture and output.
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

    /// Removes and returns the reports made so far.
    func takeReports() -> [PackagingReport] { writer.takeReports() }

    /// Whether a picture fits into this time line: key frames with other parameter sets need a new one.
    func takes(_ frame: PassedFrame) -> Bool { frame.video == nil || frame.video == header }

    /// Appends a picture.
    func append(_ frame: PassedFrame) throws {
        let shown = frame.time.nanoseconds(since: writer.zero) / 1_000
        // No later picture is shown before a key frame, so all earlier ones can be placed.
        if frame.isKeyFrame { try place(all: true) }
        unplaced.append((frame, shown))
        places.insert(shown, at: (places.lastIndex { $0 <= shown } ?? -1) + 1)
        try place(all: false)
        guard waiting.count <= Self.frameLimit else { throw Ending.pause }
    }

    /// Assigns decoding times: the display times in ascending order, to the pictures in decoding order.
    ///
    /// A picture is placed once so many follow that none of them can have an earlier display time.
    /// - Parameter all: whether no earlier display time can follow at all.
    private func place(all: Bool) throws {
        while let (frame, shown) = unplaced.first, all || places.count > header.reordered {
            unplaced.removeFirst()
            // The source's clock is corrected gradually. A picture is always after the last one, but never much later
            // than its own time.
            let time = max(places.removeFirst(), lastTime + 1_000)
            guard time <= lastTime + Self.longestPicture else { throw Ending.pause }
            lastTime = time
            if frame.isKeyFrame, time >= keyFrameTime + Int64(Self.shortestSegment) * 1_000 {
                keyFrameTime = time
            }
            // Without reordering, pictures are shown when they are decoded.
            waiting.append((frame, time, header.reordered == 0 ? time : shown))
        }
    }

    /// Appends a block of sound, and writes the pictures that waited for it.
    /// - Parameter tick: when its first sample is heard.
    func append(_ block: [Float], at tick: MonotonicTime) throws {
        try writer.append(block, at: tick)
        try writeDue()
        guard writer.soundEnd <= lastTime + Self.patience else { throw Ending.pause }
    }

    /// Whether to request a key frame from the publisher now.
    func takeKeyFrameWish() -> Bool {
        let age = keyFrameTime == 0 ? Self.firstKeyFrameAge : Self.keyFrameAge
        guard lastTime >= keyFrameTime + age, lastTime >= wishTime + Self.keyFramePatience else {
            return false
        }
        wishTime = lastTime
        return true
    }

    /// Completes the last part and segment: nothing follows.
    func end() throws {
        guard hasPicture else { return }
        let latest = partStart + timing.partMilliseconds
        try endPart(at: min(max(Int(pictureEnd / 1_000), partStart + 1), latest), endsSegment: true)
    }

    // MARK: Pictures

    /// Writes the pictures whose end is known and whose sound has arrived.
    private func writeDue() throws {
        var written = 0
        defer { waiting.removeFirst(written) }
        while written + 1 < waiting.count, waiting[written].time <= writer.soundEnd {
            let (frame, time, shown) = waiting[written]
            // The picture would have to be shown before it is decoded: after a pause, or at a very low frame rate.
            guard shown - time >= -writer.lead else { throw Ending.pause }
            try endParts(before: frame, at: Int((time + 500) / 1_000))
            guard segmentBytes + frame.bytes.count <= Self.segmentByteLimit else { throw Ending.bitrate }
            try writer.write(
                frame.bytes, at: time, shownAfter: shown - time, duration: waiting[written + 1].time - time,
                isKeyFrame: frame.isKeyFrame)
            hasPicture = true
            pictureEnd = waiting[written + 1].time
            segmentBytes += frame.bytes.count
            written += 1
        }
    }

    /// Completes the parts that end before a picture, and the segment if the picture can begin another.
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

    /// Completes the current part.
    /// - Parameter time: its end, in milliseconds.
    private func endPart(at time: Int, endsSegment: Bool) throws {
        try writer.endPart(
            at: Int64(time) * 1_000, milliseconds: time - partStart, startsSegment: startsSegment,
            endsSegment: endsSegment, captured: writer.zero + .milliseconds(Int64(partStart)) - delay)
        (partStart, startsSegment, hasPicture) = (time, false, false)
    }
}
