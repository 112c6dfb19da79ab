import Base
import Codecs
import Wire

/// Makes parts of HLS segments of a programme: packets in as they come, fragments of MP4 out by the clock.
///
/// What a rendition passes on as its publisher encoded it goes on so, where players can take it. Else 30 pictures a
/// second go out in H.264, whatever comes in: the last one is shown again where none came. Silence stands in for sound.
/// Pure: time is a parameter.
final class Packager {
    /// What libraries do for it; tests may stand in.
    struct Codecs {
        var makePictureDecoder: (VideoCodec, InputID) -> (any AssembledFrameDecoder)?
        var makeSoundDecoder: (InputID) -> (any SoundDecoder)?
    }

    /// What is made of a past that is known already.
    struct Clip {
        /// What was before is decoded only.
        var begin: MonotonicTime
        /// Pictures of all sizes and proportions are shown in one of this, in pixels.
        var canvas: VideoResolution
    }

    /// The beginning waits so long for a picture.
    static let pictureWait = Duration.milliseconds(1_500)
    /// And so long where there is a rendition in H.264 beside it: what it begins with decides whether it is offered.
    static let originalWait = PackagedVideo.keyFramePatience + .seconds(1)
    /// Who falls behind by more begins anew.
    private static let latenessLimit = Duration.seconds(1)
    /// Encoding leaves out one turn more for each of these that it is behind, so that it does not come so far.
    private static let turnsBehind = PackagingTiming.framesPerSecond / 5
    /// Frames that may be decoded for one that is shown.
    private static let decodedFrames = 8
    /// How long after its capture something is shown while pictures are passed on: nearly all sound has come by then.
    private static let passedDelay = Duration.milliseconds(200)

    /// What is made now.
    private enum Timeline {
        case encoded(PackagedTimeline)
        case passed(PassedTimeline)
        case sound(SoundTimeline)
    }

    private let codecs: Codecs
    private let request: PackagingRequest
    /// Since when a picture is waited for.
    private var waitingSince: MonotonicTime
    private let clip: Clip?
    /// Of a clip, in pixels.
    private let canvas: VideoResolution?
    private var inputs: Set<InputID> = []
    private var video: PackagedVideo?
    private var audio: (input: InputID, sound: AudioInput)?
    private var delay = PlayoutDelay()
    private var videoClock: FrameClock
    private var audioClock: FrameClock
    /// Turns to come for which the picture before lasts.
    private var coveredTurns = 0
    private var picture: Picture?
    private var timeline: Timeline?
    private var reports: [PackagingReport] = []
    /// Whether something cannot be encoded here at all.
    private(set) var hasFailed = false
    /// Whether samples are reported beside the parts that are made of them.
    var reportsSamples = false
    /// Samples that were reported; those of the next time line go on with it.
    private var samples: UInt64 = 0

    /// - Parameter clip: nil for what goes on as it comes.
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
            // All pictures of a clip are shown in one.
            video = PackagedVideo(input, passing: clip == nil ? request.rendition.passable : []) {
                VideoInput { codecs.makePictureDecoder($0, input) }
            }
        }
        for lateness in video?.receive(packet, at: now) ?? [] { delay.noteVideo(lateness) }
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
    func takeKeyFrameWish(at now: MonotonicTime) -> InputID? {
        guard let input = video?.input else { return nil }
        if case .passed(let timeline) = timeline, timeline.takeKeyFrameWish() { return input }
        return video?.takeKeyFrameWish(at: now) == true ? input : nil
    }

    // MARK: Output

    /// When `advance` has something to do.
    var deadline: MonotonicTime { min(audioClock.next, videoClock.next) }

    /// Makes what is due by now.
    func advance(to now: MonotonicTime) -> [PackagingReport] {
        if now >= deadline + Self.latenessLimit {
            // What is left out cannot be made up for on the same time line.
            if case .passed = timeline {
                video?.beginAnew(at: now)
                // An encoder's next key frame may be two seconds away.
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
            // None lasts into what is to come: its sound is not there.
            show(at: tick, min(turns, 1 + self.turns(since: tick, now)))
        }
        defer { reports = [] }
        return reports
    }

    /// How many pictures later it is now.
    private func turns(since tick: MonotonicTime, _ now: MonotonicTime) -> Int {
        max(Int((now - tick).wholeNanoseconds / videoClock.interval.wholeNanoseconds), 0)
    }

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

    /// Takes in what came of them, and begins with them where they can be passed on.
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

    private func append(_ frame: PassedFrame, to timeline: inout PassedTimeline) throws {
        let shown = frame.shown(after: Self.passedDelay)
        guard !timeline.takes(shown) else { return try timeline.append(shown) }
        try timeline.end()
        keep(timeline.takeReports())
        if let next = try begin(frame) { timeline = next }
    }

    /// - Parameter frame: a key frame.
    private func begin(_ frame: PassedFrame?) throws -> PassedTimeline? {
        guard let frame, let header = frame.video else { return nil }
        let begun = try PassedTimeline(
            frame.shown(after: Self.passedDelay), header, delay: Self.passedDelay, request)
        timeline = .passed(begun)
        return begun
    }

    private func tryPassing(at now: MonotonicTime, _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            // Whatever it was: what can be decoded can be shown.
            endPassing(at: now, because: error as? PassedTimeline.Ending)
        }
        if case .passed(let timeline) = timeline { keep(timeline.takeReports()) }
    }

    /// Goes on with what is decoded, from the last key frame on.
    /// - Returns: whether anything was passed on.
    @discardableResult
    private func endPassing(at now: MonotonicTime, because reason: PassedTimeline.Ending? = nil) -> Bool {
        guard case .passed(let passed) = timeline else { return false }
        // Of what cannot be completed the decoder makes pictures.
        try? passed.end()
        keep(passed.takeReports())
        timeline = nil
        waitingSince = now
        video?.decode(at: now, because: reason)
        return true
    }

    // MARK: Pictures that are encoded

    /// - Parameter turns: how long the picture lasts.
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
            var current: PackagedTimeline?
            if case .encoded(let timeline) = timeline, timeline.takes(picture) { current = timeline }
            let encoded = try current ?? PackagedTimeline(picture, from: tick, request)
            timeline = .encoded(encoded)
            coveredTurns =
                try encoded.append(picture, captured: tick - delay.current, turns: turns) - 1
        }
    }

    /// As it is shown.
    private func fitted(_ picture: Picture) throws(CodecError) -> Picture {
        guard let canvas else {
            return try request.rendition.scaled(picture)
        }
        guard (picture.width, picture.height) != (canvas.width, canvas.height) else { return picture }
        var sheet = try Picture(width: canvas.width, height: canvas.height)
        try sheet.fit(x: 0, y: 0, width: canvas.width, height: canvas.height, with: picture)
        return sheet
    }

    /// What is shown where no picture came.
    private func placeholder(at tick: MonotonicTime) -> Picture? {
        let patience = request.rendition == .original ? Self.originalWait : Self.pictureWait
        guard tick >= waitingSince + patience else { return nil }
        return try? Picture(width: canvas?.width ?? 640, height: canvas?.height ?? 360, luma: 24)
    }

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
    /// By the clock of what is made.
    fileprivate func shown(after delay: Duration) -> PassedFrame {
        PassedFrame(bytes: bytes, video: video, time: time + delay)
    }
}
