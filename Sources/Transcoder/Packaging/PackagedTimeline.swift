import Base
import Codecs
import Wire

/// One time line of a packaging: pictures and sound of one initialization segment, without a gap.
final class PackagedTimeline {
    private static let soundBitrate = 128_000
    /// Two sides have the same proportions up to this part of them.
    private static let tolerance = 0.02

    private let zero: MonotonicTime
    private let encoder: H264Encoder
    private let soundEncoder: AACEncoder
    private let muxer: Muxer
    private var reports: [PackagingReport] = []
    /// Pictures so far.
    private var pictures = 0
    /// When the first picture of the part was.
    private var partCaptured: MonotonicTime
    private var startsSegment = true
    private var partsOfSegment = 0
    private var isFirstSegment = true
    /// Not encoded yet, left and right in turn.
    private var sound: [Float] = []
    /// Where the next frame of sound belongs, in samples since zero; nil before the first sound.
    private var soundPosition: Int64?

    /// - Parameter zero: what is 0 on the time line.
    init(_ picture: Picture, from zero: MonotonicTime) throws {
        self.zero = zero
        partCaptured = zero
        let (width, height) = (max(picture.width & ~1, 16), max(picture.height & ~1, 16))
        // Two megabits a second at 1280x720, and less for less.
        encoder = try H264Encoder(
            width: width, height: height, framesPerSecond: PackagingTiming.framesPerSecond,
            bitrate: max(width * height * 9 / 4, 400_000))
        soundEncoder = try AACEncoder(bitrate: Self.soundBitrate)
        let resolution = VideoResolution(width: width, height: height)
        muxer = try Muxer(
            segmentsOf: Muxer.Video(codec: .h264, resolution: resolution, header: encoder.header),
            audio: soundEncoder.configuration)
        reports.append(
            .began(
                initialization: Self.join(muxer.takePieces()),
                codecs: Self.name(of: encoder.header) + ",mp4a.40.2", resolution))
        reports.append(
            .format(
                PackagingReport.Format(
                    resolution: resolution, pictureHeader: encoder.header,
                    soundConfiguration: soundEncoder.configuration)))
    }

    func takeReports() -> [PackagingReport] {
        defer { reports = [] }
        return reports
    }

    /// Whether a picture may follow: one of other proportions begins another time line, and a larger one does where a
    /// segment ends; a smaller one is enlarged.
    func takes(_ picture: Picture) -> Bool {
        let expected = Double(picture.width) * Double(encoder.height) / Double(encoder.width)
        guard abs(expected - Double(picture.height)) <= max(Double(picture.height) * Self.tolerance, 2) else {
            return false
        }
        let isAtEdge = startsSegment && pictures.isMultiple(of: PackagingTiming.framesPerPart)
        return !isAtEdge || picture.width <= encoder.width + 16
    }

    func append(_ picture: Picture, at tick: MonotonicTime, captured: MonotonicTime) throws {
        let beginsPart = pictures.isMultiple(of: PackagingTiming.framesPerPart)
        if beginsPart { partCaptured = captured }
        let fitting = try picture.scaled(width: encoder.width, height: encoder.height)
        let frame = try encoder.encode(fitting, isKeyFrame: beginsPart && startsSegment)
        guard let frame, let track = muxer.videoTrack else { throw CodecError.failed }
        let rate = Int64(PackagingTiming.framesPerSecond)
        let time = Int64(pictures) * 1_000_000 / rate
        pictures += 1
        try muxer.write(
            frame.bytes, track: track, at: time, duration: Int64(pictures) * 1_000_000 / rate - time,
            isKeyFrame: frame.isKeyFrame)
        report(frame.isKeyFrame ? .keyFrame : .picture, at: time, frame.bytes)
        if pictures.isMultiple(of: PackagingTiming.framesPerPart) { try endPart() }
    }

    /// - Parameter tick: when the first of it is heard.
    func append(_ block: [Float], at tick: MonotonicTime) throws {
        guard let track = muxer.audioTrack else { return }
        if soundPosition == nil {
            let samples = tick.nanoseconds(since: zero) * 48 / 1_000_000
            guard samples >= 0 else { return }
            // The first frame out is made of what was before.
            soundPosition = samples - Int64(AACEncoder.frames)
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
            try muxer.write(frame, track: track, at: time, duration: end - time, isKeyFrame: true)
            report(.sound, at: time, frame)
        }
    }

    /// - Parameter time: in microseconds since zero.
    private func report(_ kind: PackagingReport.Sample.Kind, at time: Int64, _ bytes: [UInt8]) {
        // Its number is the packager's.
        reports.append(
            .sample(
                PackagingReport.Sample(kind: kind, number: 0, time: zero + .microseconds(time), bytes: bytes))
        )
    }

    private func endPart() throws {
        try muxer.flush()
        partsOfSegment += 1
        let last = isFirstSegment ? PackagingTiming.partsOfFirstSegment : PackagingTiming.partsPerSegment
        let endsSegment = partsOfSegment == last
        reports.append(
            .part(
                PackagingReport.Part(
                    bytes: Self.join(muxer.takePieces()),
                    milliseconds: UInt32(PackagingTiming.partMilliseconds), startsSegment: startsSegment,
                    endsSegment: endsSegment, captured: partCaptured)))
        startsSegment = endsSegment
        guard endsSegment else { return }
        partsOfSegment = 0
        isFirstSegment = false
    }

    private static func join(_ pieces: [Muxer.Piece]) -> [UInt8] { pieces.flatMap(\.bytes) }

    /// As playlists write it: profile, constraints and level out of the sequence parameter set.
    /// - Source: RFC 6381 §3.3.
    private static func name(of header: [UInt8]) -> String {
        let start = header.indices.first { $0 >= 3 && header[$0 - 1] == 1 && header[$0] & 0x1F == 7 }
        guard let start, start + 3 < header.count else { return "avc1.42E01F" }
        let digits = header[(start + 1)...(start + 3)].map { byte in
            let text = String(byte, radix: 16, uppercase: true)
            return text.count == 1 ? "0" + text : text
        }
        return "avc1." + digits.joined()
    }
}
