import Base

/// One time line of a packaging without pictures, for links that carry sound alone.
final class SoundTimeline {
    private let timing: PackagingTiming
    private let writer: SegmentWriter
    /// Of the part under way; in milliseconds.
    private var partStart = 0
    /// When the first of it was captured; nil before its first block.
    private var partCaptured: MonotonicTime?
    private var partsOfSegment = 0
    private var isFirstSegment = true

    /// - Parameter zero: what is 0 on the time line.
    init(from zero: MonotonicTime, _ request: PackagingRequest) throws {
        timing = request.timing
        writer = try SegmentWriter(nil, framesPerSecond: nil, from: zero, request)
    }

    func takeReports() -> [PackagingReport] { writer.takeReports() }

    /// - Parameters:
    ///   - block: left and right in turn.
    ///   - tick: when the first of it is heard.
    ///   - captured: when it was captured.
    func append(_ block: [Float], at tick: MonotonicTime, captured: MonotonicTime) throws {
        let partCaptured = partCaptured ?? captured
        self.partCaptured = partCaptured
        try writer.append(block, at: tick)
        let end = partStart + timing.partMilliseconds
        guard writer.soundEnd >= Int64(end) * 1_000 else { return }
        let limit = isFirstSegment ? timing.partsOfFirstSegment : timing.partsPerSegment
        try writer.endPart(
            at: Int64(end) * 1_000, milliseconds: timing.partMilliseconds,
            startsSegment: partsOfSegment == 0, endsSegment: partsOfSegment + 1 == limit,
            captured: partCaptured)
        (partStart, self.partCaptured) = (end, nil)
        partsOfSegment += 1
        guard partsOfSegment == limit else { return }
        (partsOfSegment, isFirstSegment) = (0, false)
    }
}
