import Base
import Codecs
import Wire

/// Writes one initialization segment and the parts that belong to it: pictures come encoded, where there are any, and
/// sound is encoded here.
///
/// Times are microseconds since the beginning of the time line.
final class SegmentWriter {
    private static let samplesPerSecond: Int64 = 48_000
    /// In microseconds, for each picture that may be shown after a later one: for ten a second and more.
    private static let leadPerPicture: Int64 = 100_000
    /// Sound that begins later than the time line by no more than this, in samples, has silence before it.
    private static let longestSilence = 10 * samplesPerSecond

    /// What is 0 on the time line.
    let zero: MonotonicTime
    /// From what is 0 in media times to that, in microseconds.
    private let offset: Int64
    /// How long before the first picture is shown it is decoded, in microseconds, so that none is shown before it is.
    let lead: Int64
    private let soundEncoder: AACEncoder
    private let muxer: Muxer
    private var reports: [PackagingReport] = []
    /// Not encoded yet, left and right in turn.
    private var sound: [Float] = []
    /// Where the next frame of sound belongs, in samples since zero; nil before the first sound.
    private var soundPosition: Int64?
    /// Encoded, of parts that have not ended.
    private var soundFrames: [(bytes: [UInt8], time: Int64, end: Int64)] = []

    /// - Parameters:
    ///   - video: nil for sound alone.
    ///   - framesPerSecond: nil where pictures come as they like.
    init(
        _ video: Muxer.Video?, framesPerSecond: Int?, from zero: MonotonicTime, _ request: PackagingRequest
    ) throws {
        self.zero = zero
        offset = max(zero.nanoseconds(since: request.origin ?? zero) / 1_000, 0)
        lead = min(Int64(video?.reordered ?? 0) * Self.leadPerPicture, offset)
        soundEncoder = try AACEncoder(bitrate: request.rendition.soundBitrate)
        muxer = try Muxer(segmentsOf: video, audio: soundEncoder.configuration)
        reports.append(
            .began(
                PackagingReport.Beginning(
                    initialization: Self.join(muxer.takePieces()),
                    codecs: (video.map { CodecName.text(of: $0) + "," } ?? "") + "mp4a.40.2",
                    resolution: video?.resolution ?? VideoResolution(width: 0, height: 0),
                    framesPerSecond: framesPerSecond)))
        // Whoever takes samples takes H.264.
        guard let video, video.codec == .h264 else { return }
        reports.append(
            .format(
                PackagingReport.Format(
                    resolution: video.resolution, framesPerSecond: framesPerSecond,
                    pictureHeader: video.header,
                    soundConfiguration: soundEncoder.configuration)))
    }

    func takeReports() -> [PackagingReport] {
        defer { reports = [] }
        return reports
    }

    /// Until when there is sound.
    var soundEnd: Int64 { (soundPosition ?? 0) * 1_000_000 / Self.samplesPerSecond }

    /// What is missing at the beginning is silent: players see a gap where one track begins after the other.
    /// - Parameters:
    ///   - block: left and right in turn.
    ///   - tick: when the first of it is heard.
    func append(_ block: [Float], at tick: MonotonicTime) throws {
        if soundPosition == nil {
            let samples = tick.nanoseconds(since: zero) * 48 / 1_000_000
            guard samples >= 0 else { return }
            let silence = min(samples, Self.longestSilence)
            sound = [Float](repeating: 0, count: Int(silence) * OpusDecoder.channels)
            // The first frame out is made of what was before.
            soundPosition = samples - silence - Int64(AACEncoder.frames)
        }
        sound += block
        let length = AACEncoder.frames * OpusDecoder.channels
        while sound.count >= length, let position = soundPosition {
            let frame = try soundEncoder.encode(Array(sound[..<length]).map { $0.isFinite ? $0 : 0 })
            sound.removeFirst(length)
            guard let frame else { continue }
            soundPosition = position + Int64(AACEncoder.frames)
            guard position >= 0 else { continue }
            let (time, end) = (position * 125 / 6, (position + Int64(AACEncoder.frames)) * 125 / 6)
            soundFrames.append((frame, time, end))
            report(.sound, at: time, frame)
        }
    }

    /// - Parameters:
    ///   - picture: as decoders take it, H.264 and HEVC with start codes.
    ///   - time: its place among all of the time line, in the order in which they are decoded.
    ///   - delay: from there until it is shown; less than nothing where it is shown earlier.
    func write(
        _ picture: [UInt8], at time: Int64, shownAfter delay: Int64 = 0, duration: Int64, isKeyFrame: Bool
    ) throws {
        guard let track = muxer.videoTrack else { throw CodecError.failed }
        try muxer.write(
            picture, track: track, at: time + offset - lead, shownAfter: lead + delay, duration: duration,
            isKeyFrame: isKeyFrame)
        report(isKeyFrame ? .keyFrame : .picture, at: time, picture)
    }

    private func report(_ kind: PackagingReport.Sample.Kind, at time: Int64, _ bytes: [UInt8]) {
        // Its number is the packager's.
        reports.append(
            .sample(
                PackagingReport.Sample(kind: kind, number: 0, time: zero + .microseconds(time), bytes: bytes))
        )
    }

    /// Makes a part of the pictures since the last one, and of the sound up to its end.
    /// - Parameters:
    ///   - end: where the next one begins.
    ///   - captured: when its first picture was.
    func endPart(
        at end: Int64, milliseconds: Int, startsSegment: Bool, endsSegment: Bool, captured: MonotonicTime
    ) throws {
        let count = soundFrames.firstIndex { $0.time >= end } ?? soundFrames.count
        if let track = muxer.audioTrack {
            for (bytes, time, end) in soundFrames.prefix(count) {
                try muxer.write(
                    bytes, track: track, at: time + offset, duration: end - time, isKeyFrame: true)
            }
        }
        soundFrames.removeFirst(count)
        try muxer.flush()
        reports.append(
            .part(
                PackagingReport.Part(
                    bytes: Self.join(muxer.takePieces()), milliseconds: UInt32(clamping: milliseconds),
                    startsSegment: startsSegment, endsSegment: endsSegment, captured: captured)))
    }

    private static func join(_ pieces: [Muxer.Piece]) -> [UInt8] { pieces.flatMap(\.bytes) }
}
