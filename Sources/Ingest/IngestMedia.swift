import Base
import Wire

/// A picture, ready to be forwarded, or to be converted.
package struct IngestPicture: Equatable, Sendable {
    /// Whole RTP packets in the clear.
    package let packets: [[UInt8]]
    /// Of all of them, in ticks of 90 kHz: when it is shown.
    package let timestamp: UInt32
    /// Whether a decoder can begin with it.
    package let isKeyFrame: Bool
    /// When it was captured, on our clock; of one that is shown later than it came, perhaps later than now.
    package let captured: MonotonicTime

    package var size: Int { packets.reduce(0) { $0 + $1.count } }
}

/// When a picture is decoded and shown.
struct PictureTiming: Equatable, Sendable {
    /// In milliseconds, on the encoder's clock, modulo 2^32.
    let decoded: UInt32
    /// From decoding to showing, in milliseconds.
    let delay: Int32
}

/// A frame of AAC, to be decoded.
package struct IngestSound: Equatable, Sendable {
    /// One access unit, without a header.
    package let bytes: [UInt8]
    /// In ticks of 48 kHz, on the time line of the pictures.
    package let timestamp: UInt32
    /// On our clock.
    package let captured: MonotonicTime
}

/// Makes of a publisher's pictures and sound what workers forward and what the transcoder decodes.
///
/// H.264, VP9 and AV1 go through as they are, in RTP packets, or are to be converted where browsers do not show them,
/// as HEVC is; AAC goes on in frames. What viewers cannot be given is refused in words for whoever set up the encoder.
/// Pure: knows neither sessions nor threads.
package struct IngestMedia: Sendable {
    /// What comes of a message, in order.
    package enum Effect: Equatable, Sendable {
        /// What comes is known: make a session, and call `open`. Told once.
        case begin(IngestFormats)
        case picture(IngestPicture)
        /// The configuration of the frames that follow, which is no longer the one before.
        case soundFormat([UInt8])
        case sound(IngestSound)
        /// Once each; reports repeat them.
        case notice(IngestNotice)
        /// How it goes, every few seconds from `begin` on.
        case report(IngestReport)
        case refuse(IngestEnd)
    }

    /// How long to wait for what the encoder has not said yet.
    static let patience = Duration.seconds(1)
    /// Of what waits for the session, in bytes; then everything up to the next key frame is left out.
    static let heldLimit = 8 << 20
    private static let rareKeyFrames: Int64 = 4_000
    /// From decoding to showing, in milliseconds; who says more is not believed.
    private static let longestDelay: Int32 = 2_000

    /// Whether there is a transcoder.
    private let isDecoding: Bool
    private var timeline = MediaTimeline()
    private var packetizer: PicturePacketizer
    private let timestampOffset: UInt32
    private var video: IngestVideo?
    /// As a picture said it whose configuration does not.
    private var seenResolution: VideoResolution?
    private var pictureNumber: UInt16 = 0
    /// Of the pictures that come; not known for sure before the first one.
    private var fitness: PictureFitness?
    private var audio: (bytes: [UInt8], configuration: AACConfiguration)?
    /// By the metadata; nil before there was any.
    private var expected: (audio: Bool, video: Bool)?
    private var firstMedia: MonotonicTime?
    private var isSoundLeftOut = false
    /// Nil before `begin`.
    private var formats: IngestFormats?
    private var isOpen = false
    private var held: [Effect] = []
    private var heldBytes = 0
    private var needsKeyFrame = true
    private var lastKeyFrame: Int64?
    private var keyFrameInterval: Int64?
    /// When the latest picture is decoded, and the latest time that one was to be shown.
    private var lastPicture: (decoded: Int64, shown: Int64)?
    private var meter = IngestMeter()
    /// What was told.
    private var notices: [IngestNotice] = []
    private var effects: [Effect] = []

    /// - Parameters:
    ///   - isDecoding: whether there is a transcoder.
    ///   - seed: random.
    package init(isDecoding: Bool, seed: UInt64) {
        self.isDecoding = isDecoding
        packetizer = PicturePacketizer(seed: seed)
        timestampOffset = UInt32(truncatingIfNeeded: seed >> 16)
    }

    // MARK: What comes

    /// Takes in what the encoder says it will send.
    package mutating func expect(audio: Bool, video: Bool, at now: MonotonicTime) -> [Effect] {
        if formats == nil { expected = (audio, video) }
        return advance(to: now)
    }

    /// Takes in what decoders of the pictures that follow have to know.
    /// - Parameters:
    ///   - record: the codec's configuration record, which may make no sense.
    ///   - codec: one that is taken.
    mutating func configure(
        video record: Span<UInt8>, of codec: FLVVideoTag.Codec, at now: MonotonicTime
    ) -> [Effect] {
        firstMedia = firstMedia ?? now
        if let found = try? IngestVideo(codec, parsing: record) {
            configure(video: found)
        } else {
            refuse("The \(codec) configuration makes no sense.")
        }
        return advance(to: now)
    }

    /// Takes a picture in; nothing comes of one before its configuration.
    /// - Parameter units: as the configuration has them.
    mutating func receive(
        picture units: Span<UInt8>, _ timing: PictureTiming, isKeyFrame: Bool, at now: MonotonicTime
    ) -> [Effect] {
        firstMedia = firstMedia ?? now
        show(units, timing, isKeyFrame: isKeyFrame, timeline.place(timing.decoded, at: now))
        return advance(to: now)
    }

    /// A picture did not come whole: what refers to it would be wrong, too.
    mutating func losePicture() { needsKeyFrame = true }

    /// Takes in what decoders of the frames that follow have to know: an AudioSpecificConfig.
    mutating func configure(audio bytes: Span<UInt8>, at now: MonotonicTime) -> [Effect] {
        guard takesSound(at: now) else { return advance(to: now) }
        configure(audio: bytes)
        return advance(to: now)
    }

    /// Takes a frame of AAC in; nothing comes of one before its configuration.
    /// - Parameter timestamp: in milliseconds, on the clock of the pictures.
    mutating func receive(sound frame: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime) -> [Effect] {
        guard takesSound(at: now), audio != nil, let frame = try? frame.bytes(0..<frame.count), !frame.isEmpty
        else { return advance(to: now) }
        let place = timeline.place(timestamp, at: now)
        give(
            .sound(
                IngestSound(
                    bytes: frame, timestamp: UInt32(truncatingIfNeeded: place.media &* 48),
                    captured: place.captured)), size: frame.count)
        return advance(to: now)
    }

    private mutating func takesSound(at now: MonotonicTime) -> Bool {
        firstMedia = firstMedia ?? now
        guard !isDecoding else { return true }
        isSoundLeftOut = true
        if formats != nil { tell(.soundLeftOut) }
        return false
    }

    /// Pictures, or sound, come in a codec that viewers cannot be given.
    /// - Parameter remedy: what the encoder can be set to.
    static func refusal(
        ofVideo codec: some CustomStringConvertible, remedy: String = "H.264 (AVC)"
    ) -> [Effect] {
        [.refuse(.unsupported("\(codec) cannot be shown here: set the encoder to \(remedy)."))]
    }

    /// The same of sound.
    static func refusal(ofAudio codec: some CustomStringConvertible) -> [Effect] {
        [.refuse(.unsupported("\(codec) cannot be heard here: set the encoder to AAC."))]
    }

    /// Counts what came, for reports.
    mutating func measure(video bytes: Int, isFrame: Bool) {
        meter.noteVideo(bytes: bytes, isFrame: isFrame)
    }

    /// The same of sound.
    mutating func measure(audio bytes: Int) { meter.noteAudio(bytes: bytes) }

    private mutating func configure(video configuration: IngestVideo) {
        if formats?.hasVideo == false { tell(.cameTooLate(isAudio: false)) }
        if formats?.codec.map({ $0 != configuration.codec }) ?? false {
            return refuse(
                "The codec changed while the stream was live: stop the encoder, and start it with the other one."
            )
        }
        video = configuration
        // Whoever is converted stays so: a decoder takes whatever comes.
        guard formats?.conversion == nil else { return }
        judge(PictureFitness(configuration))
    }

    /// Draws the consequences of what pictures are like.
    private mutating func judge(_ found: PictureFitness) {
        fitness = found
        switch found {
        case .asItIs, .unlessReordered, .unlessContradicted: break
        case .converted(let conversion):
            if !isDecoding {
                refuse(conversion.refusal(because: "the transcoder, which would make it anew, is off here"))
            } else if formats?.hasVideo == true {
                refuse(conversion.refusal(because: "this began while the stream was live"))
            }
        case .never(let conversion):
            refuse(conversion.refusal(because: "this kind cannot be decoded here"))
        }
    }

    private mutating func refuse(_ text: String) { effects.append(.refuse(.unsupported(text))) }

    private mutating func configure(audio bytes: Span<UInt8>) {
        guard let configuration = try? AACConfiguration(parsing: bytes), configuration.isCommon,
            let copy = try? bytes.bytes(0..<bytes.count), copy.count <= 64
        else {
            return effects.append(
                .refuse(.unsupported("This kind of AAC cannot be heard here: set the encoder to AAC-LC.")))
        }
        if formats?.hasAudio == false { tell(.cameTooLate(isAudio: true)) }
        guard audio?.bytes != copy else { return }
        audio = (copy, configuration)
        give(.soundFormat(copy), size: 0)
    }

    // MARK: Pictures

    private mutating func show(
        _ bytes: Span<UInt8>, _ timing: PictureTiming, isKeyFrame: Bool, _ place: MediaTimeline.Place
    ) {
        guard let video else { return }
        guard let head = try? video.head(of: bytes, isKeyFrame: isKeyFrame) else {
            // What refers to it would be wrong, too.
            needsKeyFrame = true
            return
        }
        let isKeyFrame = head.isKeyFrame
        if isKeyFrame {
            needsKeyFrame = false
            noteKeyFrame(at: place.media)
        }
        guard !needsKeyFrame else { return }
        note(head)
        let shown = place.media + Int64(timing.delay)
        noteOrder(timing, decoded: place.media, shown: shown, isKeyFrame: isKeyFrame)
        let timestamp = UInt32(truncatingIfNeeded: shown &* 90) &+ timestampOffset
        var isConverted = false
        if case .converted? = fitness { isConverted = true }
        guard
            let payloads = try? video.payloads(
                of: bytes, head, isConverted: isConverted, number: pictureNumber)
        else {
            needsKeyFrame = true
            return
        }
        let packets = packetizer.packets(of: payloads, timestamp: timestamp)
        guard !packets.isEmpty else { return }
        pictureNumber &+= 1
        let picture = IngestPicture(
            packets: packets, timestamp: timestamp, isKeyFrame: isKeyFrame,
            captured: place.captured + .milliseconds(min(max(timing.delay, 0), Self.longestDelay)))
        give(.picture(picture), size: picture.size)
    }

    /// Takes in what a picture says of itself.
    private mutating func note(_ head: IngestVideo.Head) {
        seenResolution = head.resolution ?? seenResolution
        guard let video, fitness == .unlessContradicted || head.contradicts else { return }
        if case .converted? = fitness { return }
        // Whatever it is exactly, the decoder finds out.
        judge(head.contradicts ? .converted(.colours(video.codec)) : .asItIs)
    }

    /// Finds out whether pictures are shown in another order than they come.
    ///
    /// One that would have to be shown before it came is held back by its encoder from the first picture on, so a delay
    /// of that says it where the configuration does not.
    private mutating func noteOrder(
        _ timing: PictureTiming, decoded: Int64, shown: Int64, isKeyFrame: Bool
    ) {
        defer { lastPicture = (decoded, shown) }
        if fitness == .unlessReordered, formats == nil {
            return judge(timing.delay > 0 ? .converted(.reordering) : .asItIs)
        }
        if case .converted? = fitness { return }
        guard let lastPicture, shown < lastPicture.shown, decoded >= lastPicture.decoded, !isKeyFrame
        else { return }
        judge(.converted(.reordering))
    }

    private mutating func noteKeyFrame(at media: Int64) {
        defer { lastKeyFrame = media }
        guard let lastKeyFrame else { return }
        keyFrameInterval = media - lastKeyFrame
        if media - lastKeyFrame > Self.rareKeyFrames {
            tell(.rareKeyFrames(milliseconds: media - lastKeyFrame))
        }
    }

    // MARK: What goes on

    /// Hands on, or keeps until there is a session.
    private mutating func give(_ effect: Effect, size: Int) {
        guard !isOpen else { return effects.append(effect) }
        heldBytes += size
        if heldBytes > Self.heldLimit {
            held.removeAll { if case .soundFormat = $0 { false } else { true } }
            heldBytes = 0
            needsKeyFrame = true
            return
        }
        held.append(effect)
    }

    private mutating func tell(_ notice: IngestNotice) {
        guard !notices.contains(where: { $0.code == notice.code }) else { return }
        notices.append(notice)
        effects.append(.notice(notice))
    }

    /// There is a session: what was kept goes on.
    package mutating func open() -> [Effect] {
        isOpen = true
        defer {
            held = []
            heldBytes = 0
        }
        return held
    }

    // MARK: Time

    /// When `advance` has something to do.
    package var deadline: MonotonicTime? {
        guard formats == nil else { return meter.deadline }
        return video != nil || audio != nil || isSoundLeftOut ? firstMedia.map { $0 + Self.patience } : nil
    }

    /// Begins once it is known what comes, or has been waited for long enough.
    package mutating func advance(to now: MonotonicTime) -> [Effect] {
        defer { effects = [] }
        if formats == nil, isComplete(at: now) { begin(at: now) }
        if var report = meter.takeReport(at: now) {
            report.keyFrameInterval = keyFrameInterval
            report.notices = notices
            effects.append(.report(report))
        }
        return effects
    }

    private mutating func begin(at now: MonotonicTime) {
        guard video != nil || audio != nil else {
            return refuse(
                "The sound is AAC, which becomes Opus in the transcoder, and that is off on this server: publish by WHIP, "
                    + "or have the server's operator switch the transcoder on.")
        }
        var conversion: IngestConversion?
        if case .converted(let reason)? = fitness { conversion = reason }
        let formats = IngestFormats(
            video: video, resolution: video?.resolution ?? seenResolution, audio: audio?.configuration,
            conversion: conversion)
        self.formats = formats
        meter.begin(at: now)
        effects.append(.begin(formats))
        if let conversion { tell(.converted(conversion)) }
        if isSoundLeftOut { tell(.soundLeftOut) }
    }

    /// Whether all is there, or was waited for long enough.
    private func isComplete(at now: MonotonicTime) -> Bool {
        let hasWaited = firstMedia.map { now >= $0 + Self.patience } ?? false
        guard video != nil || audio != nil else { return isSoundLeftOut && hasWaited }
        if hasWaited { return true }
        if video != nil, fitness?.awaitsPicture == true { return false }
        if video != nil, audio != nil || !isDecoding { return true }
        guard let expected else { return false }
        return (!expected.video || video != nil) && (!expected.audio || audio != nil || !isDecoding)
    }
}
