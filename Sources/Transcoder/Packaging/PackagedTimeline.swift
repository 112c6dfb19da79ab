import Base
import Codecs
import Wire

/// A gapless time line of re-encoded pictures and sound, with one initialization segment.
final class PackagedTimeline {
    /// Relative difference up to which two pictures count as having the same proportions.
    private static let tolerance = 0.02

    private let timing: PackagingTiming
    private let encoder: H264Encoder
    private let writer: SegmentWriter
    /// Turns of the video clock so far; one picture lasts one or more turns.
    private var turns = 0
    /// When the first picture of the current part was captured.
    private var partCaptured: MonotonicTime
    /// Whether the current part begins a segment.
    private var startsSegment = true
    /// Completed parts of the current segment.
    private var partsOfSegment = 0
    private var isFirstSegment = true

    /// Opens encoder and writer for pictures of this size.
    /// - Parameter zero: the time that is 0 on the time line.
    init(_ picture: Picture, from zero: MonotonicTime, _ request: PackagingRequest) throws {
        timing = request.timing
        partCaptured = zero
        let (width, height) = (max(picture.width & ~1, 16), max(picture.height & ~1, 16))
        let resolution = VideoResolution(width: width, height: height)
        encoder = try H264Encoder(
            width: width, height: height, framesPerSecond: PackagingTiming.framesPerSecond,
            bitrate: request.rendition.pictureBitrate(of: resolution))
        writer = try SegmentWriter(
            Muxer.Video(codec: .h264, resolution: resolution, header: encoder.header),
            framesPerSecond: PackagingTiming.framesPerSecond, from: zero, request)
    }

    /// Removes and returns the reports made so far.
    func takeReports() -> [PackagingReport] { writer.takeReports() }

    /// Whether a picture fits into this time line.
    ///
    /// A picture with other proportions needs a new one. A larger picture needs one as well, but only where a segment
    /// ends; a smaller picture is enlarged.
    func takes(_ picture: Picture) -> Bool {
        let expected = Double(picture.width) * Double(encoder.height) / Double(encoder.width)
        guard abs(expected - Double(picture.height)) <= max(Double(picture.height) * Self.tolerance, 2) else {
            return false
        }
        let isAtEdge = startsSegment && turns.isMultiple(of: timing.framesPerPart)
        return !isAtEdge || picture.width <= encoder.width + 16
    }

    /// Encodes a picture that lasts some turns of the video clock, but at most for the rest of its part.
    /// - Returns: the turns that it lasts.
    func append(_ picture: Picture, captured: MonotonicTime, turns wanted: Int) throws -> Int {
        let ofPart = turns % timing.framesPerPart
        if ofPart == 0 { partCaptured = captured }
        let fitting = try picture.scaled(width: encoder.width, height: encoder.height)
        // A segment begins with a key frame.
        let frame = try encoder.encode(fitting, isKeyFrame: ofPart == 0 && startsSegment)
        guard let frame else { throw CodecError.failed }
        let lasting = min(max(wanted, 1), timing.framesPerPart - ofPart)
        let rate = Int64(PackagingTiming.framesPerSecond)
        let time = Int64(turns) * 1_000_000 / rate
        turns += lasting
        let end = Int64(turns) * 1_000_000 / rate
        try writer.write(frame.bytes, at: time, duration: end - time, isKeyFrame: frame.isKeyFrame)
        if turns.isMultiple(of: timing.framesPerPart) { try endPart(at: end) }
        return lasting
    }

    /// Appends a block of sound.
    /// - Parameter tick: when its first sample is heard.
    func append(_ block: [Float], at tick: MonotonicTime) throws { try writer.append(block, at: tick) }

    /// Completes a part, and a segment after enough parts.
    private func endPart(at end: Int64) throws {
        partsOfSegment += 1
        let last = isFirstSegment ? timing.partsOfFirstSegment : timing.partsPerSegment
        let endsSegment = partsOfSegment == last
        try writer.endPart(
            at: end, milliseconds: timing.partMilliseconds, startsSegment: startsSegment,
            endsSegment: endsSegment, captured: partCaptured)
        startsSegment = endsSegment
        guard endsSegment else { return }
        partsOfSegment = 0
        isFirstSegment = false
    }
}
