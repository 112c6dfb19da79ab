import Base
import Codecs
import Wire

/// One composed programme: everyone on stage in one picture, and one mix of their sound.
///
/// Accepts packets as they arrive and emits packets at its own rate. Where media is late or lost, the last picture is
/// repeated and sound is concealed: output never waits for input. Pure: time is a parameter, and the caller reports
/// how long the work took.
package final class Composition {
    /// Creates decoders; tests replace them with stubs.
    struct Codecs {
        /// Called with the number of the input; nil if the codec cannot be decoded.
        var makePictureDecoder: (VideoCodec, UInt64) -> (any PictureDecoder)? = { codec, _ in
            try? VideoDecoder(codec)
        }
        var makeSoundDecoder: (UInt64) -> (any SoundDecoder)? = { _ in try? OpusDecoder() }
    }

    /// Most speakers; further ones are neither seen nor heard.
    package static let maximumSpeakers = 64
    /// Longest distance of key frames, for viewers who join.
    static let keyFrameInterval = Duration.seconds(2)
    /// Shortest distance of key frames that are made on request.
    static let shortestKeyFrameInterval = Duration.milliseconds(300)
    /// Longest wait for a speaker's first picture; a card is shown afterwards.
    static let patience = Duration.milliseconds(800)
    /// Frames per second that speakers share equally, as long as each gets at least `decodedFramesOfOne`.
    private static let decodedFrames = 480
    /// Least frames per second that are decoded of one speaker.
    private static let decodedFramesOfOne = 120
    /// Of the mix, in bits per second.
    private static let audioBitrate = 96_000
    /// Blocks of sound per second, of 20 ms each.
    private static let audioPerSecond: Int64 = 50

    private let codecs: Codecs
    private let start: MonotonicTime
    private var scene: CompositionScene
    private var speakers: [String: Speaker] = [:]
    /// Maps each input to the speaker whose picture or sound it is.
    private var inputs: [UInt64: String] = [:]
    private var assignment = TileAssignment()
    /// Speakers in the tiles as last drawn; empty if all tiles have to be drawn again.
    private var drawn: [String] = []
    private var canvas: Canvas?
    private var mixer = Mixer()
    private var audioClock: FrameClock
    private var videoClock: FrameClock
    private var governor = OverloadGovernor()
    private var videoEncoder: VP8Encoder?
    private var smallEncoder: VP8Encoder?
    private let audioEncoder: OpusEncoder?
    private var audioPackets: PacketMaker
    private var videoPackets: PacketMaker
    private var smallPackets: PacketMaker
    private var isKeyFrameWanted = true
    private var lastKeyFrame: MonotonicTime?
    private var frameCount: UInt64 = 0
    /// Whether output has begun.
    private var isReady = false
    private var meter = CompositionMeter()
    /// The video clock's counter at the last call of `note(cost:)`.
    private var lastSkipped: UInt64 = 0

    /// - Parameter seed: determines SSRCs and first sequence numbers; different for each life of a composition.
    package convenience init(_ scene: CompositionScene, seed: UInt64, at now: MonotonicTime) {
        self.init(scene, seed: seed, codecs: Codecs(), at: now)
    }

    init(_ scene: CompositionScene, seed: UInt64, codecs: Codecs, at now: MonotonicTime) {
        self.codecs = codecs
        self.scene = scene
        start = now
        audioClock = FrameClock(perSecond: Self.audioPerSecond, from: now)
        videoClock = FrameClock(perSecond: Int64(scene.settings.framesPerSecond), from: now)
        audioEncoder = try? OpusEncoder(bitrate: Self.audioBitrate)
        audioPackets = PacketMaker(seed: seed, kind: .audio)
        videoPackets = PacketMaker(seed: seed, kind: .video)
        smallPackets = PacketMaker(seed: seed, kind: .smallVideo)
        update(scene, at: now)
    }

    // MARK: Input

    /// Applies a new scene; speakers who remain keep their state.
    package func update(_ new: CompositionScene, at now: MonotonicTime) {
        let hasOtherSettings = new.settings != scene.settings
        scene = new
        scene.speakers = Array(new.speakers.prefix(Self.maximumSpeakers))
        let ids = Set(scene.speakers.map(\.id))
        speakers = speakers.filter { ids.contains($0.key) }
        inputs.removeAll(keepingCapacity: true)
        for person in scene.speakers {
            let speaker = speakers[person.id] ?? Speaker(person, joined: now)
            speaker.update(person, codecs: codecs)
            speakers[person.id] = speaker
            for input in [person.video, person.audio] {
                if let input { inputs[input] = person.id }
            }
        }
        // Size, rate or layout changed: the canvas and the encoders no longer fit.
        if hasOtherSettings {
            videoClock.change(perSecond: rate)
            beginPictureAnew()
        }
    }

    /// Passes a packet to its speaker.
    /// - Parameter input: as numbered in the scene.
    package func receive(_ packet: InputPacket, of input: UInt64, at now: MonotonicTime) {
        guard let id = inputs[input], let speaker = speakers[id] else { return meter.strayPackets &+= 1 }
        do throws(WireError) {
            try speaker.receive(packet, of: input, at: now)
        } catch {
            meter.undecodablePackets &+= 1
        }
    }

    /// Requests a key frame for a viewer who cannot begin or continue without one.
    package func requestKeyFrame() {
        isKeyFrameWanted = true
    }

    /// The inputs for which a key frame has to be requested from the publisher, in order.
    package func takeKeyFrameWishes() -> [UInt64] {
        speakers.values.compactMap { speaker in
            speaker.video?.takeKeyFrameWish() == true ? speaker.person.video : nil
        }.sorted()
    }

    // MARK: Output

    /// When `advance` has to be called.
    package var deadline: MonotonicTime { min(audioClock.next, videoClock.next) }

    /// Mixes and composes what is due by now.
    package func advance(to now: MonotonicTime) -> [ComposedPacket] {
        var packets: [ComposedPacket] = []
        for speaker in speakers.values { speaker.video?.advance(to: now) }
        if !isReady { isReady = canBegin(at: now) }
        // Late blocks of sound are made up for, up to 200 ms; late pictures are skipped.
        while let tick = audioClock.takeDue(at: now, patience: .milliseconds(200)) {
            if let packet = mix(at: tick) { packets.append(packet) }
        }
        if let tick = videoClock.takeDue(at: now, patience: videoClock.interval) {
            packets += compose(at: tick, now)
        }
        return packets
    }

    /// Notes the time that the work since the last call took, and adapts rate and size to it.
    package func note(cost: Duration, at now: MonotonicTime) {
        meter.finish(cost: cost)
        let missed = Int(clamping: videoClock.skipped &- lastSkipped)
        lastSkipped = videoClock.skipped
        guard governor.note(cost, missed: missed, at: now) else { return }
        videoClock.change(perSecond: rate)
        beginPictureAnew()
    }

    /// Returns measurements, and begins a new interval.
    package func takeStatus(at now: MonotonicTime) -> CompositionStatus {
        var status = meter.takeStatus(at: now)
        status.level = governor.index
        status.targetFramesPerSecond = Int(videoClock.perSecond)
        status.width = canvas?.picture.width ?? 0
        status.height = canvas?.picture.height ?? 0
        status.speakers = speakers.count
        status.skippedFrames = videoClock.skipped
        status.delayMilliseconds =
            Int((speakers.values.map(\.delay.current).max() ?? .zero).wholeNanoseconds / 1_000_000)
        for speaker in speakers.values {
            guard let audio = speaker.audio?.statistics else { continue }
            status.concealedSamples &+= audio.concealedFrames
            status.lateAudioPackets &+= audio.late
        }
        return status
    }

    /// Whether output can begin: every speaker with a camera has a picture, or has been waited for.
    private func canBegin(at now: MonotonicTime) -> Bool {
        now >= start + Self.patience
            || speakers.values.allSatisfy {
                $0.person.video == nil || !$0.person.hasPicture || $0.video?.hasPicture == true
            }
    }

    // MARK: Sound

    /// Mixes and encodes 20 ms of sound; nil before output begins.
    ///
    /// Decoding begins before that, so that inputs do not accumulate.
    private func mix(at tick: MonotonicTime) -> ComposedPacket? {
        let count = AudioInput.blockFrames * OpusDecoder.channels
        var blocks: [[Float]] = []
        for person in scene.speakers {
            guard let speaker = speakers[person.id] else { continue }
            speaker.delay.advance()
            guard let block = speaker.audio?.block(capturedAt: tick - speaker.delay.current) else { continue }
            blocks.append(block)
        }
        let sum = mixer.mix(blocks, count: count)
        guard isReady, let payload = try? audioEncoder?.encode(sum) else { return nil }
        let timestamp = UInt32(truncatingIfNeeded: ticks(of: tick, rate: 48_000))
        let bytes = audioPackets.opus(payload, timestamp: timestamp, marker: false)
        return ComposedPacket(kind: .audio, captured: tick, bytes: bytes)
    }

    /// RTP ticks since the beginning, rounded.
    private func ticks(of time: MonotonicTime, rate: Int64) -> Int64 {
        let (seconds, rest) = time.nanoseconds(since: start).quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* rate &+ (rest &* rate &+ 500_000_000) / 1_000_000_000
    }

    // MARK: Picture

    /// Pictures per second at the current overload level.
    private var rate: Int64 { Int64(max(scene.settings.framesPerSecond * governor.level.rate / 100, 1)) }

    /// Discards canvas and encoders, so that the next picture is a key frame with the current settings.
    private func beginPictureAnew() {
        canvas = nil
        videoEncoder = nil
        smallEncoder = nil
        drawn = []
        isKeyFrameWanted = true
    }

    /// Takes the speakers' current pictures, draws what changed, and encodes.
    private func compose(at tick: MonotonicTime, _ now: MonotonicTime) -> [ComposedPacket] {
        // The allowance bounds decoding: an input may deliver seconds of cached pictures in one moment.
        let share = max(Self.decodedFrames / max(speakers.count, 1), Self.decodedFramesOfOne)
        for speaker in speakers.values {
            speaker.video?.allow((share + Int(rate) - 1) / Int(rate))
            guard let arrival = speaker.takePicture(at: tick) else { continue }
            meter.notePicture(waited: now - arrival)
        }
        draw(at: now)
        guard isReady else { return [] }
        return encode(at: tick)
    }

    /// The picture as last drawn.
    package var picture: Picture? { canvas?.picture }

    /// Draws the tiles that changed, or all if their order did.
    private func draw(at now: MonotonicTime) {
        let settings = scene.settings
        let size = governor.level.size
        if canvas == nil {
            canvas = try? Canvas(
                width: max(settings.width * size / 100, 64), height: max(settings.height * size / 100, 64),
                background: settings.background)
            drawn = []
        }
        guard let picture = canvas?.picture else { return }
        let (width, height) = (picture.width, picture.height)
        // Shared screens come first; otherwise the order of the scene is kept.
        let ids = scene.speakers.filter { person in
            speakers[person.id]?.isPresentable(at: now) ?? false
        }.sorted { $0.isScreen && !$1.isScreen }.map(\.id)
        let isSpotlight = settings.layout == .spotlight
        let arrived = scene.speakers.sorted { $0.arrival < $1.arrival }.map(\.id)
        assignment.update(ids, arrived: arrived, first: isSpotlight ? ids.first : nil)
        let frames = TileLayout.frames(
            assignment.places.count, width: width, height: height, layout: settings.layout)
        let isNew = drawn != assignment.places
        if isNew {
            canvas?.clear()
            drawn = assignment.places
        }
        for (id, frame) in zip(assignment.places, frames) {
            guard let speaker = speakers[id], isNew || speaker.isChanged else { continue }
            canvas?.draw(speaker.content, in: frame)
            speaker.isChanged = false
        }
    }

    /// Encodes the picture, and every other time its small copy.
    private func encode(at tick: MonotonicTime) -> [ComposedPacket] {
        guard let canvas else { return [] }
        let picture = canvas.picture
        var isKeyFrame = videoEncoder == nil || lastKeyFrame == nil
        if let lastKeyFrame {
            // Rather half a frame early than half a frame late.
            if tick + .milliseconds(10) >= lastKeyFrame + Self.keyFrameInterval { isKeyFrame = true }
            if isKeyFrameWanted, tick >= lastKeyFrame + Self.shortestKeyFrameInterval { isKeyFrame = true }
        }
        guard let encoder = encoder(for: picture) else { return [] }
        let time = ticks(of: tick, rate: 90_000)
        let timestamp = UInt32(truncatingIfNeeded: time)
        guard let frame = try? encoder.encode(picture, timestamp: time, isKeyFrame: isKeyFrame) else {
            return []
        }
        if frame.isKeyFrame {
            lastKeyFrame = tick
            isKeyFrameWanted = false
            meter.keyFrames &+= 1
        }
        meter.noteFrame(bytes: frame.bytes.count)
        defer { frameCount &+= 1 }
        var packets = videoPackets.vp8(frame.bytes, timestamp: timestamp)
            .map { ComposedPacket(kind: .video, captured: tick, bytes: $0) }
        if frame.isKeyFrame || frameCount.isMultiple(of: 2) {
            packets += encodeSmall(picture, time: time, isKeyFrame: frame.isKeyFrame, at: tick)
        }
        return packets
    }

    /// The encoder for this picture, opened if there is none; the bit rate follows the area at the current level.
    private func encoder(for picture: Picture) -> VP8Encoder? {
        if let videoEncoder { return videoEncoder }
        let share = governor.level.size * governor.level.size
        var settings = VP8Encoder.Settings(
            width: picture.width, height: picture.height, framesPerSecond: Int(rate),
            bitrate: max(scene.settings.bitrate * share / 10_000, 100_000))
        settings.threads = picture.width * picture.height > 640 * 480 ? 2 : 1
        settings.speed = 10
        videoEncoder = try? VP8Encoder(settings)
        return videoEncoder
    }

    /// Encodes a copy with a quarter of the width and height at half the rate, for viewers who need only a small
    /// picture.
    ///
    /// Its key frames coincide with those of the large picture.
    private func encodeSmall(
        _ picture: Picture, time: Int64, isKeyFrame: Bool, at tick: MonotonicTime
    ) -> [ComposedPacket] {
        let (width, height) = ((picture.width / 4) & ~1, (picture.height / 4) & ~1)
        guard width >= 64, height >= 64, let small = try? picture.scaled(width: width, height: height) else {
            return []
        }
        if smallEncoder == nil {
            smallEncoder = try? VP8Encoder(
                VP8Encoder.Settings(
                    width: width, height: height, framesPerSecond: max(Int(rate) / 2, 1), bitrate: 120_000))
        }
        guard let frame = try? smallEncoder?.encode(small, timestamp: time, isKeyFrame: isKeyFrame) else {
            return []
        }
        return smallPackets.vp8(frame.bytes, timestamp: UInt32(truncatingIfNeeded: time))
            .map { ComposedPacket(kind: .smallVideo, captured: tick, bytes: $0) }
    }
}
