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

    init(at now: MonotonicTime, codecs: Codecs) {
        self.codecs = codecs
        start = now
        (videoClock, audioClock) = Self.clocks(from: now)
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
            let new = try? taken.picture.scaled(longSide: Self.longSide, shortSide: Self.shortSide)
        {
            picture = new
        }
        guard let picture = picture ?? placeholder(at: tick) else { return }
        if let timeline, !timeline.takes(picture) { self.timeline = nil }
        perform {
            if timeline == nil { timeline = try PackagedTimeline(picture, from: tick) }
            try timeline?.append(picture, at: tick, captured: tick - delay.current)
        }
    }

    /// What is shown where no picture came.
    private func placeholder(at tick: MonotonicTime) -> Picture? {
        guard tick >= start + Self.pictureWait else { return nil }
        return try? Picture(width: 640, height: 360, luma: 24)
    }

    private func perform(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            hasFailed = true
        }
        reports += timeline?.takeReports() ?? []
    }
}
