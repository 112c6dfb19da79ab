import Base
import Codecs
import Wire

/// Makes parts of HLS segments of a programme: packets in as they come, fragments of MP4 out by the clock.
///
/// Whatever comes in, 30 pictures a second and 48,000 samples go out, so that each part is exactly as long as playlists
/// say: the last picture is shown again where none came, and silence stands in for sound. Pure: time is a parameter.
final class Packager {
    /// What libraries do for it; tests may stand in.
    struct Codecs {
        var makePictureDecoder: (VideoCodec, InputID) -> (any PictureDecoder)?
        var makeSoundDecoder: (InputID) -> (any SoundDecoder)?
    }

    /// What is made of a past that is known already.
    struct Clip {
        /// What was before is decoded only.
        var begin: MonotonicTime
        /// Pictures of all sizes and proportions are shown in one of this, in pixels.
        var canvas: VideoResolution
    }

    /// Of what is made, in pixels; a smaller picture stays as it is.
    static let (longSide, shortSide) = (1_280, 720)
    /// The beginning waits so long for a picture.
    static let pictureWait = Duration.milliseconds(1_500)
    /// Who falls behind by more begins anew.
    private static let latenessLimit = Duration.seconds(1)
    /// Frames that may be decoded for one that is shown.
    private static let decodedFrames = 8

    private let codecs: Codecs
    private let start: MonotonicTime
    private let clip: Clip?
    /// Of a clip, in pixels.
    private let canvas: (width: Int, height: Int)?
    private var inputs: Set<InputID> = []
    private var video: (input: InputID, frames: VideoInput)?
    private var audio: (input: InputID, sound: AudioInput)?
    private var delay = PlayoutDelay()
    private var videoClock: FrameClock
    private var audioClock: FrameClock
    private var picture: Picture?
    private var timeline: PackagedTimeline?
    private var reports: [PackagingReport] = []
    /// Whether something cannot be encoded here at all.
    private(set) var hasFailed = false
    /// Whether samples are reported beside the parts that are made of them.
    var reportsSamples = false
    /// Samples that were reported; those of the next time line go on with it.
    private var samples: UInt64 = 0

    /// - Parameter clip: nil for what goes on as it comes.
    init(at now: MonotonicTime, codecs: Codecs, clip: Clip? = nil) {
        self.codecs = codecs
        self.clip = clip
        canvas = clip.map { Self.size(within: $0.canvas) }
        start = now
        (videoClock, audioClock) = Self.clocks(from: now)
    }

    /// The size in which a picture of this one is shown whole, in even numbers.
    private static func size(within resolution: VideoResolution) -> (width: Int, height: Int) {
        let (width, height) = (max(resolution.width, 16), max(resolution.height, 16))
        let scale = min(
            1, Double(longSide) / Double(max(width, height)), Double(shortSide) / Double(min(width, height)))
        let sides = [width, height].map { max(Int((Double($0) * scale).rounded()) & ~1, 16) }
        return (sides[0], sides[1])
    }

    private static func clocks(from now: MonotonicTime) -> (video: FrameClock, audio: FrameClock) {
        (
            FrameClock(perSecond: Int64(PackagingTiming.framesPerSecond), from: now),
            FrameClock(perSecond: 50, from: now)
        )
    }

    // MARK: Input

    func open(_ input: InputID) {
        inputs.insert(input)
    }

    /// Nothing more comes of it; its last picture stays until there is another.
    func close(_ input: InputID) {
        inputs.remove(input)
        if video?.input == input { video = nil }
        if audio?.input == input { audio = nil }
    }

    func receive(_ packet: InputPacket, of input: InputID, at now: MonotonicTime) {
        guard inputs.contains(input) else { return }
        if packet.codec.video != nil {
            receiveVideo(packet, of: input, at: now)
        } else if packet.codec == .opus, !packet.payload.isEmpty {
            receiveAudio(packet, of: input, at: now)
        }
    }

    private func receiveVideo(_ packet: InputPacket, of input: InputID, at now: MonotonicTime) {
        if video?.input != input {
            guard input.number > video?.input.number ?? 0 else { return }
            let codecs = codecs
            video = (input, VideoInput { codecs.makePictureDecoder($0, input) })
        }
        for lateness in video?.frames.receive(packet, at: now) ?? [] { delay.noteVideo(lateness) }
    }

    private func receiveAudio(_ packet: InputPacket, of input: InputID, at now: MonotonicTime) {
        if audio?.input != input {
            guard input.number > audio?.input.number ?? 0 else { return }
            audio = codecs.makeSoundDecoder(input).map { (input, AudioInput(decoder: $0)) }
        }
        guard let frames = try? OpusPayload.duration(packet.payload.span) else { return }
        let lateness = audio?.sound.receive(
            packet.payload, timestamp: packet.timestamp, frames: frames, captured: packet.captured,
            epoch: packet.epoch, at: now)
        if let lateness { delay.noteAudio(lateness) }
    }

    /// The input whose publisher has to make a key frame.
    func takeKeyFrameWish() -> InputID? {
        guard let video, video.frames.takeKeyFrameWish() else { return nil }
        return video.input
    }

    // MARK: Output

    /// When `advance` has something to do.
    var deadline: MonotonicTime { min(audioClock.next, videoClock.next) }

    /// Makes what is due by now.
    func advance(to now: MonotonicTime) -> [PackagingReport] {
        if now >= deadline + Self.latenessLimit {
            // What is left out cannot be made up for on the same time line.
            timeline = nil
            (videoClock, audioClock) = Self.clocks(from: now)
        }
        video?.frames.advance(to: now)
        while let tick = audioClock.takeDue(at: now, patience: Self.latenessLimit) {
            delay.advance()
            let block = audio?.sound.block(capturedAt: tick - delay.current)
            let silence = AudioInput.blockFrames * OpusDecoder.channels
            perform { try timeline?.append(block ?? [Float](repeating: 0, count: silence), at: tick) }
        }
        while let tick = videoClock.takeDue(at: now, patience: Self.latenessLimit) { show(at: tick) }
        defer { reports = [] }
        return reports
    }

    private func show(at tick: MonotonicTime) {
        video?.frames.allow(Self.decodedFrames)
        if let taken = video?.frames.takePicture(capturedBy: tick - delay.current),
            let new = try? fitted(taken.picture)
        {
            picture = new
        }
        guard tick >= clip?.begin ?? tick, let picture = picture ?? placeholder(at: tick) else { return }
        if let timeline, !timeline.takes(picture) { self.timeline = nil }
        perform {
            if timeline == nil { timeline = try PackagedTimeline(picture, from: tick) }
            try timeline?.append(picture, at: tick, captured: tick - delay.current)
        }
    }

    /// As it is shown.
    private func fitted(_ picture: Picture) throws(CodecError) -> Picture {
        guard let canvas else {
            return try picture.scaled(longSide: Self.longSide, shortSide: Self.shortSide)
        }
        guard (picture.width, picture.height) != canvas else { return picture }
        var sheet = try Picture(width: canvas.width, height: canvas.height)
        try sheet.fit(x: 0, y: 0, width: canvas.width, height: canvas.height, with: picture)
        return sheet
    }

    /// What is shown where no picture came.
    private func placeholder(at tick: MonotonicTime) -> Picture? {
        guard tick >= start + Self.pictureWait else { return nil }
        return try? Picture(width: canvas?.width ?? 640, height: canvas?.height ?? 360, luma: 24)
    }

    private func perform(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            hasFailed = true
        }
        for report in timeline?.takeReports() ?? [] {
            guard case .sample(var sample) = report else {
                reports.append(report)
                continue
            }
            guard reportsSamples else { continue }
            samples &+= 1
            sample.number = samples
            reports.append(.sample(sample))
        }
    }
}
