import Base
import Codecs
import Wire

/// Packages a programme as HLS: accepts packets as they arrive, and returns MP4 fragments by the clock.
///
/// If the rendition permits it and players support the publisher's encoding, pictures are passed through unchanged.
/// Otherwise 30 pictures per second are encoded as H.264 regardless of the input rate: the last picture is repeated if
/// none arrived. Silence replaces missing sound. Pure: time is a parameter.
final class Packager {
    /// Creates decoders; tests replace them with stubs.
    ///
    /// Both return nil for an input that cannot be decoded.
    struct Codecs {
        var makePictureDecoder: (VideoCodec, InputID) -> (any AssembledFrameDecoder)?
        var makeSoundDecoder: (InputID) -> (any SoundDecoder)?
    }

    /// The parameters of a clip, whose packets all exist already.
    struct Clip {
        /// Earlier packets are decoded, but not shown.
        var begin: MonotonicTime
        /// Size in pixels into which pictures of all sizes and proportions are fitted.
        var canvas: VideoResolution
    }

    /// How long the beginning waits for a picture before a placeholder is shown.
    static let pictureWait = Duration.milliseconds(1_500)
    /// The same for `original`, long enough for pass-through to be tried.
    ///
    /// What it begins with decides whether it is offered beside the rendition in H.264.
    static let originalWait = PackagedVideo.keyFramePatience + .seconds(1)
    /// Delay beyond which packaging starts a new time line, because it cannot catch up.
    private static let latenessLimit = Duration.seconds(1)
    /// Turns of delay for each of which encoding skips one more turn, so that `latenessLimit` is not reached.
    private static let turnsBehind = PackagingTiming.framesPerSecond / 5
    /// Most frames decoded per turn of the video clock.
    private static let decodedFrames = 8
    /// Delay between capture and output of passed pictures, within which nearly all sound has arrived.
    private static let passedDelay = Duration.milliseconds(200)

    /// The time line in progress.
    private enum Timeline {
        case encoded(PackagedTimeline)
        case passed(PassedTimeline)
        case sound(SoundTimeline)
    }

    private let codecs: Codecs
    private let request: PackagingRequest
    /// When the wait for a picture began; may be in the future, which extends the wait.
    private var waitingSince: MonotonicTime
    private let clip: Clip?
    /// Size of a clip in pixels; nil without a clip.
    private let canvas: VideoResolution?
    /// Open inputs; packets of others are ignored.
    private var inputs: Set<InputID> = []
    /// The input with the highest number counts: it is the one that was opened last.
    private var video: PackagedVideo?
    private var audio: (input: InputID, sound: AudioInput)?
    private var delay = PlayoutDelay()
    private var videoClock: FrameClock
    private var audioClock: FrameClock
    /// Turns to come that the last picture covers.
    private var coveredTurns = 0
    /// The last picture, repeated while no newer one arrives.
    private var picture: Picture?
    /// Nil before the first picture, and between two time lines.
    private var timeline: Timeline?
    private var reports: [PackagingReport] = []
    /// Whether encoding or writing failed; the job then ends.
    private(set) var hasFailed = false
    /// Whether samples are reported in addition to parts, for listeners such as restreams.
    var reportsSamples = false
    /// Number of the last reported sample; continues across time lines.
    private var samples: UInt64 = 0

    /// - Parameter clip: nil for live media.
    init(
        at now: MonotonicTime, codecs: Codecs, clip: Clip? = nil,
        request: PackagingRequest = PackagingRequest()
    ) {
        self.codecs = codecs
        self.request = request
        self.clip = clip
        canvas = clip.map { request.rendition.size(of: $0.canvas) }
        waitingSince = now
        (videoClock, audioClock) = Self.clocks(from: now)
    }

    /// Both clocks start at the same time, so that pictures and sound share a time line.
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

    /// Notes the end of an input; its last picture is shown until another input has one.
    func close(_ input: InputID, at now: MonotonicTime) {
        inputs.remove(input)
        if video?.input == input, !endPassing(at: now) { video = nil }
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
            endPassing(at: now)
            let codecs = codecs
            // Pass-through is off for clips, whose pictures are all fitted into one size.
            video = PackagedVideo(input, passing: clip == nil ? request.rendition.passable : []) {
                VideoInput { codecs.makePictureDecoder($0, input) }
            }
        }
        for lateness in video?.receive(packet, at: now) ?? [] { delay.noteVideo(lateness) }
    }

    /// Passes a packet to the sound input, which a newer input replaces.
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

    /// The input for which a key frame has to be requested now; nil if none.
    func takeKeyFrameWish(at now: MonotonicTime) -> InputID? {
        guard let input = video?.input else { return nil }
        if case .passed(let timeline) = timeline, timeline.takeKeyFrameWish() { return input }
        return video?.takeKeyFrameWish(at: now) == true ? input : nil
    }

    // MARK: Output

    /// When `advance` has to be called.
    var deadline: MonotonicTime { min(audioClock.next, videoClock.next) }

    /// Produces what is due by now.
    func advance(to now: MonotonicTime) -> [PackagingReport] {
        if now >= deadline + Self.latenessLimit {
            // Skipped media cannot be made up for on the same time line.
            if case .passed = timeline {
                video?.beginAnew(at: now)
                // The next key frame may be two seconds away.
                waitingSince = now + .seconds(1)
            }
            (timeline, coveredTurns) = (nil, 0)
            (videoClock, audioClock) = Self.clocks(from: now)
        }
        video?.advance(to: now)
        pass(at: now)
        while let tick = audioClock.takeDue(at: now, patience: Self.latenessLimit) { sound(at: tick, now) }
        let turns = 1 + turns(since: videoClock.next, now) / Self.turnsBehind
        while let tick = videoClock.takeDue(at: now, patience: Self.latenessLimit) {
            guard coveredTurns == 0 else {
                coveredTurns -= 1
                continue
            }
            // A picture must not extend into the future, where there is no sound yet.
            show(at: tick, min(turns, 1 + self.turns(since: tick, now)))
        }
        defer { reports = [] }
        return reports
    }

    /// How many turns of the video clock have passed since `tick`.
    private func turns(since tick: MonotonicTime, _ now: MonotonicTime) -> Int {
        max(Int((now - tick).wholeNanoseconds / videoClock.interval.wholeNanoseconds), 0)
    }

    /// Appends 20 ms of sound to the time line, silence if there is none.
    private func sound(at tick: MonotonicTime, _ now: MonotonicTime) {
        delay.advance()
        var lag = delay.current
        if case .passed = timeline { lag = Self.passedDelay }
        let block =
            audio?.sound.block(capturedAt: tick - lag)
            ?? [Float](repeating: 0, count: AudioInput.blockFrames * OpusDecoder.channels)
        if request.rendition == .sound, timeline == nil {
            perform { timeline = .sound(try SoundTimeline(from: tick, request)) }
        }
        switch timeline {
        case .encoded(let timeline): perform { try timeline.append(block, at: tick) }
        case .sound(let timeline): perform { try timeline.append(block, at: tick, captured: tick - lag) }
        case .passed(let timeline): tryPassing(at: now) { try timeline.append(block, at: tick) }
        case nil: break
        }
    }

    // MARK: Pictures that are passed on

    /// Continues a time line of passed pictures, or begins one if that is possible now.
    private func pass(at now: MonotonicTime) {
        guard case .passed(var timeline) = timeline else {
            guard let frames = video?.takeBeginning(at: now, delay: Self.passedDelay) else { return }
            picture = nil
            tryPassing(at: now) {
                guard var timeline = try begin(frames.first) else { return }
                for frame in frames.dropFirst() { try append(frame, to: &timeline) }
            }
            return
        }
        guard let frames = video?.takeFrames() else {
            endPassing(at: now)
            return
        }
        tryPassing(at: now) { for frame in frames { try append(frame, to: &timeline) } }
    }

    /// Appends a passed picture; other parameter sets begin a new time line.
    private func append(_ frame: PassedFrame, to timeline: inout PassedTimeline) throws {
        let shown = frame.shown(after: Self.passedDelay)
        guard !timeline.takes(shown) else { return try timeline.append(shown) }
        try timeline.end()
        keep(timeline.takeReports())
        if let next = try begin(frame) { timeline = next }
    }

    /// Begins a time line of passed pictures.
    /// - Parameter frame: a key frame.
    private func begin(_ frame: PassedFrame?) throws -> PassedTimeline? {
        guard let frame, let header = frame.video else { return nil }
        let begun = try PassedTimeline(
            frame.shown(after: Self.passedDelay), header, delay: Self.passedDelay, request)
        timeline = .passed(begun)
        return begun
    }

    /// Works on a time line of passed pictures; any failure ends pass-through.
    private func tryPassing(at now: MonotonicTime, _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            // Whatever the error was, pictures can still be decoded.
            endPassing(at: now, because: error as? PassedTimeline.Ending)
        }
        if case .passed(let timeline) = timeline { keep(timeline.takeReports()) }
    }

    /// Ends pass-through; decoding continues from the last key frame.
    /// - Returns: false if no pictures were passed.
    @discardableResult
    private func endPassing(at now: MonotonicTime, because reason: PassedTimeline.Ending? = nil) -> Bool {
        guard case .passed(let passed) = timeline else { return false }
        // If the last part cannot be completed, its pictures are decoded.
        try? passed.end()
        keep(passed.takeReports())
        timeline = nil
        waitingSince = now
        video?.decode(at: now, because: reason)
        return true
    }

    // MARK: Pictures that are encoded

    /// Encodes the current picture, unless pictures are passed through.
    /// - Parameter turns: how many turns of the video clock the picture lasts.
    private func show(at tick: MonotonicTime, _ turns: Int) {
        if case .passed = timeline { return }
        guard request.rendition != .sound else { return }
        video?.frames?.allow(Self.decodedFrames)
        if let taken = video?.frames?.takePicture(capturedBy: tick - delay.current),
            let new = try? fitted(taken.picture)
        {
            picture = new
        }
        guard tick >= clip?.begin ?? tick, let picture = picture ?? placeholder(at: tick) else { return }
        perform {
            // A picture that does not fit begins a new time line.
            var current: PackagedTimeline?
            if case .encoded(let timeline) = timeline, timeline.takes(picture) { current = timeline }
            let encoded = try current ?? PackagedTimeline(picture, from: tick, request)
            timeline = .encoded(encoded)
            coveredTurns =
                try encoded.append(picture, captured: tick - delay.current, turns: turns) - 1
        }
    }

    /// A picture in the size in which it is encoded; in a clip, fitted into its canvas.
    private func fitted(_ picture: Picture) throws(CodecError) -> Picture {
        guard let canvas else {
            return try request.rendition.scaled(picture)
        }
        guard (picture.width, picture.height) != (canvas.width, canvas.height) else { return picture }
        var sheet = try Picture(width: canvas.width, height: canvas.height)
        try sheet.fit(x: 0, y: 0, width: canvas.width, height: canvas.height, with: picture)
        return sheet
    }

    /// A dark picture in place of one that has not arrived in time; nil before that.
    private func placeholder(at tick: MonotonicTime) -> Picture? {
        let patience = request.rendition == .original ? Self.originalWait : Self.pictureWait
        guard tick >= waitingSince + patience else { return nil }
        return try? Picture(width: canvas?.width ?? 640, height: canvas?.height ?? 360, luma: 24)
    }

    /// Works on an encoded time line; a failure is final.
    private func perform(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            hasFailed = true
        }
        switch timeline {
        case .encoded(let timeline): keep(timeline.takeReports())
        case .sound(let timeline): keep(timeline.takeReports())
        case .passed, nil: break
        }
    }

    /// Queues reports, and numbers the samples; drops samples that are not wanted.
    private func keep(_ made: [PackagingReport]) {
        for report in made {
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

extension PassedFrame {
    /// The frame with its time shifted from capture to output.
    fileprivate func shown(after delay: Duration) -> PassedFrame {
        PassedFrame(bytes: bytes, video: video, time: time + delay)
    }
}
