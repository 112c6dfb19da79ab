import Base
import Wire

/// A picture, ready to be forwarded.
package struct IngestPicture: Equatable, Sendable {
    /// Whole RTP packets in the clear.
    package let packets: [[UInt8]]
    /// On our clock.
    package let captured: MonotonicTime

    var size: Int { packets.reduce(0) { $0 + $1.count } }
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

/// Makes of a publisher's FLV messages what workers forward and what the transcoder decodes.
///
/// H.264 goes through as it is, in RTP packets; AAC goes on in frames. What viewers cannot be given is refused in words
/// for whoever set up the encoder. Pure: knows neither sessions nor threads.
package struct IngestMedia: Sendable {
    /// What comes of a message, in order.
    package enum Effect: Equatable, Sendable {
        /// What comes is known: make a session, and call `open`. Told once.
        case begin(IngestFormats)
        case picture(IngestPicture)
        /// The configuration of the frames that follow, which is no longer the one before.
        case soundFormat([UInt8])
        case sound(IngestSound)
        case notice(Notice)
        case refuse(IngestEnd)
    }

    /// What is worth a line in the log, once each.
    package enum Notice: Equatable, Sendable {
        /// Viewers wait for key frames where the cache does not hold one.
        case rareKeyFrames(milliseconds: Int64)
        /// Sound that nobody can be given, because nothing is decoded here.
        case soundLeftOut
        /// Sound, or a picture, that began when the session was there already.
        case cameTooLate(isAudio: Bool)
    }

    /// How long to wait for what the encoder has not said yet.
    static let patience = Duration.seconds(1)
    /// Of what waits for the session, in bytes; then everything up to the next key frame is left out.
    static let heldLimit = 8 << 20
    private static let rareKeyFrames: Int64 = 4_000
    /// Baseline, main and high, which browsers decode.
    private static let profiles: Set<UInt8> = [66, 77, 100]

    private let decodesSound: Bool
    private var timeline = MediaTimeline()
    private var packetizer: H264Packetizer
    private let timestampOffset: UInt32
    private var video: AVCConfiguration?
    private var audio: [UInt8]?
    /// By the metadata; nil before there was any.
    private var expected: (audio: Bool, video: Bool)?
    private var firstMedia: MonotonicTime?
    /// Nil before `begin`.
    private var formats: IngestFormats?
    private var isOpen = false
    private var held: [Effect] = []
    private var heldBytes = 0
    private var needsKeyFrame = true
    private var lastKeyFrame: Int64?
    /// When the latest picture is decoded, and the latest time that one was to be shown.
    private var lastPicture: (decoded: Int64, shown: Int64)?
    private var told: Set<String> = []
    private var effects: [Effect] = []

    /// - Parameters:
    ///   - decodesSound: whether there is a transcoder.
    ///   - seed: random.
    package init(decodesSound: Bool, seed: UInt64) {
        self.decodesSound = decodesSound
        packetizer = H264Packetizer(seed: seed)
        timestampOffset = UInt32(truncatingIfNeeded: seed >> 16)
    }

    // MARK: What comes

    /// Takes in what the encoder says of itself.
    package mutating func receive(metadata members: [AMF0Value.Member], at now: MonotonicTime) -> [Effect] {
        let object = AMF0Value.object(members)
        if formats == nil, !members.isEmpty {
            expected = (
                audio: Self.isPresent(object[name: "audiocodecid"]),
                video: Self.isPresent(object[name: "videocodecid"])
            )
        }
        return advance(to: now)
    }

    private static func isPresent(_ codec: AMF0Value?) -> Bool {
        switch codec {
        case .number(let number)?: number != 0
        case .string(let text)?: !text.isEmpty
        default: false
        }
    }

    /// Takes a video message's body in; what is no FLV tag is passed over.
    /// - Parameter timestamp: in milliseconds, on the encoder's clock.
    package mutating func receive(
        video bytes: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime
    ) -> [Effect] {
        // An empty message says nothing; encoders send them to keep connections alive.
        guard let tag = try? FLVVideoTag(parsing: bytes) else { return [] }
        firstMedia = firstMedia ?? now
        guard tag.codec == .h264 else {
            return [
                .refuse(.unsupported("\(tag.codec) cannot be shown here: set the encoder to H.264 (AVC)."))
            ]
        }
        switch tag.content {
        case .configuration: configure(video: bytes.extracting(tag.body))
        case .frame:
            show(bytes.extracting(tag.body), tag, timeline.place(timestamp, at: now))
        case .other: break
        }
        return advance(to: now)
    }

    /// The same of sound.
    package mutating func receive(
        audio bytes: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime
    ) -> [Effect] {
        guard let tag = try? FLVAudioTag(parsing: bytes) else { return [] }
        firstMedia = firstMedia ?? now
        guard tag.codec == .aac else {
            return [.refuse(.unsupported("\(tag.codec) cannot be heard here: set the encoder to AAC."))]
        }
        guard decodesSound else {
            tell(.soundLeftOut)
            return advance(to: now)
        }
        switch tag.content {
        case .configuration: configure(audio: bytes.extracting(tag.body))
        case .frame where audio != nil:
            let place = timeline.place(timestamp, at: now)
            guard let frame = try? bytes.bytes(tag.body), !frame.isEmpty else { break }
            give(
                .sound(
                    IngestSound(
                        bytes: frame, timestamp: UInt32(truncatingIfNeeded: place.media &* 48),
                        captured: place.captured)), size: frame.count)
        case .frame, .other: break
        }
        return advance(to: now)
    }

    private mutating func configure(video bytes: Span<UInt8>) {
        guard let configuration = try? AVCConfiguration(parsing: bytes) else {
            return effects.append(.refuse(.unsupported("The H.264 configuration makes no sense.")))
        }
        guard Self.profiles.contains(configuration.profile) else {
            return effects.append(
                .refuse(
                    .unsupported(
                        "Browsers do not show H.264 of profile \(configuration.profile): set the encoder's "
                            + "profile to baseline, main or high, with 8 bits and 4:2:0.")))
        }
        if formats?.hasVideo == false { tell(.cameTooLate(isAudio: false)) }
        video = configuration
    }

    private mutating func configure(audio bytes: Span<UInt8>) {
        guard let configuration = try? AACConfiguration(parsing: bytes), configuration.isCommon,
            let copy = try? bytes.bytes(0..<bytes.count), copy.count <= 64
        else {
            return effects.append(
                .refuse(.unsupported("This kind of AAC cannot be heard here: set the encoder to AAC-LC.")))
        }
        if formats?.hasAudio == false { tell(.cameTooLate(isAudio: true)) }
        guard audio != copy else { return }
        audio = copy
        give(.soundFormat(copy), size: 0)
    }

    // MARK: Pictures

    private mutating func show(_ bytes: Span<UInt8>, _ tag: FLVVideoTag, _ place: MediaTimeline.Place) {
        guard let video else { return }
        if tag.isKeyFrame {
            needsKeyFrame = false
            noteKeyFrame(at: place.media)
        }
        guard !needsKeyFrame else { return }
        let shown = place.media + Int64(tag.compositionTime)
        if let lastPicture, shown < lastPicture.shown, place.media >= lastPicture.decoded, !tag.isKeyFrame {
            return effects.append(
                .refuse(
                    .unsupported(
                        "The encoder sends B-frames, which browsers do not show: set B-frames to 0 "
                            + "(x264: tune zerolatency) or the profile to baseline.")))
        }
        lastPicture = (place.media, shown)
        let timestamp = UInt32(truncatingIfNeeded: shown &* 90) &+ timestampOffset
        guard let packets = try? packetizer.packets(of: bytes, video, timestamp: timestamp) else {
            // What refers to it would be wrong, too.
            needsKeyFrame = true
            return
        }
        guard !packets.isEmpty else { return }
        let picture = IngestPicture(packets: packets, captured: place.captured)
        give(.picture(picture), size: picture.size)
    }

    private mutating func noteKeyFrame(at media: Int64) {
        defer { lastKeyFrame = media }
        guard let lastKeyFrame, media - lastKeyFrame > Self.rareKeyFrames else { return }
        tell(.rareKeyFrames(milliseconds: media - lastKeyFrame))
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

    private mutating func tell(_ notice: Notice) {
        let name: String =
            switch notice {
            case .rareKeyFrames: "key frames"
            case .soundLeftOut: "sound"
            case .cameTooLate(let isAudio): "late \(isAudio)"
            }
        if told.insert(name).inserted { effects.append(.notice(notice)) }
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
        formats == nil && (video != nil || audio != nil) ? firstMedia.map { $0 + Self.patience } : nil
    }

    /// Begins once it is known what comes, or has been waited for long enough.
    package mutating func advance(to now: MonotonicTime) -> [Effect] {
        defer { effects = [] }
        if formats == nil, isComplete(at: now) {
            let formats = IngestFormats(video: video, hasAudio: audio != nil)
            self.formats = formats
            effects.append(.begin(formats))
        }
        return effects
    }

    private func isComplete(at now: MonotonicTime) -> Bool {
        guard video != nil || audio != nil else { return false }
        if video != nil, audio != nil || !decodesSound { return true }
        if let firstMedia, now >= firstMedia + Self.patience { return true }
        guard let expected else { return false }
        return (!expected.video || video != nil) && (!expected.audio || audio != nil || !decodesSound)
    }
}

/// What a publisher sends, as it is known before the first picture.
package struct IngestFormats: Equatable, Sendable {
    /// Whether there are pictures, which are H.264.
    package let hasVideo: Bool
    /// Whether there is sound, which is AAC.
    package let hasAudio: Bool
    /// Nil without a picture, and where its size is not told.
    package let resolution: VideoResolution?
    /// `profile_idc`; nil without a picture.
    package let profile: UInt8?

    init(video: AVCConfiguration?, hasAudio: Bool) {
        hasVideo = video != nil
        self.hasAudio = hasAudio
        resolution = video?.pictures?.resolution
        profile = video?.profile
    }
}
