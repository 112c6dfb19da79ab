import Base
import Codecs
import Wire

/// Writes an initialization segment and its parts; pictures are given encoded, sound is encoded here.
///
/// Times are in microseconds since the beginning of the time line.
final class SegmentWriter {
    private static let samplesPerSecond: Int64 = 48_000
    /// Lead time for each reordered picture, in microseconds: sufficient for ten pictures per second and more.
    private static let leadPerPicture: Int64 = 100_000
    /// Longest silence inserted before sound that begins later than the time line, in samples.
    private static let longestSilence = 10 * samplesPerSecond

    /// The time that is 0 on the time line.
    let zero: MonotonicTime
    /// Media time of `zero`, in microseconds; the media times of all renditions count from one origin.
    private let offset: Int64
    /// Microseconds by which pictures are decoded before they are shown, so that no reordered picture is shown too
    /// early.
    let lead: Int64
    private let soundEncoder: AACEncoder
    private let muxer: Muxer
    private var reports: [PackagingReport] = []
    /// Sound that is not encoded yet, interleaved.
    private var sound: [Float] = []
    /// Position of the next encoded frame, in samples since `zero`; nil before the first sound.
    private var soundPosition: Int64?
    /// Encoded frames of parts that have not ended, with their beginning and end in microseconds.
    private var soundFrames: [(bytes: [UInt8], time: Int64, end: Int64)] = []

    /// Opens encoder and muxer, and reports the beginning of a time line.
    /// - Parameters:
    ///   - video: nil for sound alone.
    ///   - framesPerSecond: nil for sound alone, and for passed pictures.
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
        // Samples are only defined for H.264.
        guard let video, video.codec == .h264 else { return }
        reports.append(
            .format(
                PackagingReport.Format(
                    resolution: video.resolution, framesPerSecond: framesPerSecond,
                    pictureHeader: video.header,
                    soundConfiguration: soundEncoder.configuration)))
    }

    /// Removes and returns the reports made so far.
    func takeReports() -> [PackagingReport] {
        defer { reports = [] }
        return reports
    }

    /// End of the encoded sound, in microseconds.
    var soundEnd: Int64 { (soundPosition ?? 0) * 1_000_000 / Self.samplesPerSecond }

    /// Encodes a block of sound.
    ///
    /// Silence is inserted where the first sound is later than the time line: players show a gap if one track begins
    /// after the other.
    /// - Parameters:
    ///   - block: interleaved samples, left first.
    ///   - tick: when its first sample is heard.
    func append(_ block: [Float], at tick: MonotonicTime) throws {
        if soundPosition == nil {
            let samples = tick.nanoseconds(since: zero) * 48 / 1_000_000
            guard samples >= 0 else { return }
            let silence = min(samples, Self.longestSilence)
            sound = [Float](repeating: 0, count: Int(silence) * OpusDecoder.channels)
            // The encoder's first frame contains the silence before its input, so positions begin one frame earlier.
            soundPosition = samples - silence - Int64(AACEncoder.frames)
        }
        sound += block
        let length = AACEncoder.frames * OpusDecoder.channels
        while sound.count >= length, let position = soundPosition {
            // A NaN or infinity would disturb the encoder.
            let frame = try soundEncoder.encode(Array(sound[..<length]).map { $0.isFinite ? $0 : 0 })
            sound.removeFirst(length)
            guard let frame else { continue }
            soundPosition = position + Int64(AACEncoder.frames)
            guard position >= 0 else { continue }
            // 125/6 microseconds per sample at 48 kHz.
            let (time, end) = (position * 125 / 6, (position + Int64(AACEncoder.frames)) * 125 / 6)
            soundFrames.append((frame, time, end))
            report(.sound, at: time, frame)
        }
    }

    /// Writes a picture.
    /// - Parameters:
    ///   - picture: in the format of decoders: H.264 and HEVC with start codes.
    ///   - time: when it is decoded, on the time line.
    ///   - delay: from decoding to display; negative if it is shown earlier.
    func write(
        _ picture: [UInt8], at time: Int64, shownAfter delay: Int64 = 0, duration: Int64, isKeyFrame: Bool
    ) throws {
        guard let track = muxer.videoTrack else { throw CodecError.failed }
        try muxer.write(
            picture, track: track, at: time + offset - lead, shownAfter: lead + delay, duration: duration,
            isKeyFrame: isKeyFrame)
        report(isKeyFrame ? .keyFrame : .picture, at: time, picture)
    }

    /// Reports a sample.
    private func report(_ kind: PackagingReport.Sample.Kind, at time: Int64, _ bytes: [UInt8]) {
        // The packager assigns the number.
        reports.append(
            .sample(
                PackagingReport.Sample(kind: kind, number: 0, time: zero + .microseconds(time), bytes: bytes))
        )
    }

    /// Completes a part with the pictures since the last one, and the sound up to its end.
    /// - Parameters:
    ///   - end: where the next part begins.
    ///   - captured: when the first picture was captured.
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
