import Base
import Codecs
import Wire

/// One time line of a packaging that is encoded here: pictures and sound of one initialization segment, without a gap.
final class PackagedTimeline {
    /// Two sides have the same proportions up to this part of them.
    private static let tolerance = 0.02

    private let timing: PackagingTiming
    private let encoder: H264Encoder
    private let writer: SegmentWriter
    /// Turns of the clock of pictures so far.
    private var turns = 0
    /// When the first picture of the part was.
    private var partCaptured: MonotonicTime
    private var startsSegment = true
    private var partsOfSegment = 0
    private var isFirstSegment = true

    /// - Parameter zero: what is 0 on the time line.
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

    func takeReports() -> [PackagingReport] { writer.takeReports() }

    /// Whether a picture may follow: one of other proportions begins another time line, and a larger one does where a
    /// segment ends; a smaller one is enlarged.
    func takes(_ picture: Picture) -> Bool {
        let expected = Double(picture.width) * Double(encoder.height) / Double(encoder.width)
        guard abs(expected - Double(picture.height)) <= max(Double(picture.height) * Self.tolerance, 2) else {
            return false
        }
        let isAtEdge = startsSegment && turns.isMultiple(of: timing.framesPerPart)
        return !isAtEdge || picture.width <= encoder.width + 16
    }

    /// Encodes a picture, and has it last for some turns of the clock of pictures, at most for the rest of its part.
    /// - Returns: for how many it does.
    func append(_ picture: Picture, captured: MonotonicTime, turns wanted: Int) throws -> Int {
        let ofPart = turns % timing.framesPerPart
        if ofPart == 0 { partCaptured = captured }
        let fitting = try picture.scaled(width: encoder.width, height: encoder.height)
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

    /// - Parameter tick: when the first of it is heard.
    func append(_ block: [Float], at tick: MonotonicTime) throws { try writer.append(block, at: tick) }

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
