import Base

/// A time line of sound without pictures, for links too slow for pictures.
final class SoundTimeline {
    private let timing: PackagingTiming
    private let writer: SegmentWriter
    /// Beginning of the current part, in milliseconds.
    private var partStart = 0
    /// When its first sample was captured; nil before its first block.
    private var partCaptured: MonotonicTime?
    /// Completed parts of the current segment.
    private var partsOfSegment = 0
    private var isFirstSegment = true

    /// Begins a time line.
    /// - Parameter zero: the time that is 0 on the time line.
    init(from zero: MonotonicTime, _ request: PackagingRequest) throws {
        timing = request.timing
        writer = try SegmentWriter(nil, framesPerSecond: nil, from: zero, request)
    }

    /// Removes and returns the reports made so far.
    func takeReports() -> [PackagingReport] { writer.takeReports() }

    /// Encodes a block of sound, and completes the part when it is long enough.
    /// - Parameters:
    ///   - block: interleaved samples, left first.
    ///   - tick: when its first sample is heard.
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
