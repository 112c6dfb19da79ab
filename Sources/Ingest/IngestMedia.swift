import Base
import Wire

/// A picture in RTP packets, ready to be forwarded or converted.
package struct IngestPicture: Equatable, Sendable {
    /// Whole RTP packets, not encrypted.
    package let packets: [[UInt8]]
    /// RTP time stamp of all packets, in ticks of 90 kHz: when the picture is shown.
    package let timestamp: UInt32
    /// Whether a decoder can begin with it.
    package let isKeyFrame: Bool
    /// When it was captured, on the server's clock; may be in the future for a picture that is shown later than it is
    /// decoded.
    package let captured: MonotonicTime

    /// Of all packets, in bytes.
    package var size: Int { packets.reduce(0) { $0 + $1.count } }
}

/// When a picture is decoded and shown.
struct PictureTiming: Equatable, Sendable {
    /// In milliseconds, on the encoder's clock, modulo 2^32.
    let decoded: UInt32
    /// From decoding to presentation, in milliseconds.
    let delay: Int32
}

/// A frame of AAC for the transcoder.
package struct IngestSound: Equatable, Sendable {
    /// One access unit, without an ADTS header.
    package let bytes: [UInt8]
    /// In ticks of 48 kHz, on the same time line as the pictures.
    package let timestamp: UInt32
    /// When it was captured, on the server's clock.
    package let captured: MonotonicTime
}

/// Converts a publisher's pictures and sound into what workers forward and the transcoder decodes.
///
/// H.264, VP9 and AV1 are packetized unchanged, or marked for conversion where browsers do not show them, as HEVC
/// always is; AAC is passed on in frames. Media that viewers cannot get is refused with a text for the person who set
/// up the encoder. A pure state machine: it knows neither sessions nor threads, and time is a parameter.
package struct IngestMedia: Sendable {
    /// The results of a call, in order.
    package enum Effect: Equatable, Sendable {
        /// The formats are known: create a session, then call `open`.
        ///
        /// Reported once.
        case begin(IngestFormats)
        /// A picture to forward, or to convert if `begin` reported a conversion.
        case picture(IngestPicture)
        /// The AudioSpecificConfig of the frames that follow; it differs from the one before.
        case soundFormat([UInt8])
        /// A frame of AAC.
        case sound(IngestSound)
        /// A problem that was just detected, reported once; later reports repeat it.
        case notice(IngestNotice)
        /// Measurements, every `IngestMeter.interval` after `begin`.
        case report(IngestReport)
        /// The media cannot be accepted; end the connection.
        case refuse(IngestEnd)
    }

    /// How long `begin` waits for formats that have not arrived, from the first media on.
    static let patience = Duration.seconds(1)
    /// The same for those of a track that the encoder announced.
    ///
    /// A hardware encoder by SRT is connected in the middle of a group of pictures: its sound arrives at once, but the
    /// configuration of its pictures with the next key frame. Below `IngestTimeouts.join`.
    static let announcedPatience = Duration.seconds(5)
    /// Most media kept before the session is open, in bytes; beyond it all is dropped up to the next key frame.
    static let heldLimit = 8 << 20
    /// Counted in addition for each effect and each packet that is kept, in bytes: a frame of one byte takes as much
    /// memory.
    private static let heldOverhead = 128
    /// Distance of key frames above which the publisher is advised to lower it, in milliseconds.
    private static let rareKeyFrames: Int64 = 4_000
    /// Longest credible delay from decoding to presentation, in milliseconds; longer ones are clamped.
    private static let longestDelay: Int32 = 2_000

    /// Whether there is a transcoder, which sound and all conversions require.
    private let isDecoding: Bool
    private var timeline = MediaTimeline()
    private var packetizer: PicturePacketizer
    /// Random start of the RTP time stamps (RFC 3550 §5.1).
    private let timestampOffset: UInt32
    private var video: IngestVideo?
    /// Size from a picture's own header, for codecs whose configuration does not contain it.
    private var seenResolution: VideoResolution?
    /// Counts pictures, for the picture ID of VP9.
    private var pictureNumber: UInt16 = 0
    /// Whether browsers show the pictures; provisional until the first one has arrived.
    private var fitness: PictureFitness?
    private var audio: (bytes: [UInt8], configuration: AACConfiguration)?
    /// Tracks announced by the metadata or the programme table; nil before either arrived.
    private var expected: (audio: Bool, video: Bool)?
    /// When the first configuration or frame arrived; nil before.
    private var firstMedia: MonotonicTime?
    /// When the first configuration of video arrived; nil before.
    private var firstVideo: MonotonicTime?
    /// Whether there is sound that is dropped for lack of a transcoder.
    private var isSoundLeftOut = false
    /// As reported by `begin`; nil before.
    private var formats: IngestFormats?
    /// Whether the session exists; effects are kept in `held` until then.
    private var isOpen = false
    private var held: [Effect] = []
    private var heldBytes = 0
    /// Whether pictures are dropped until the next key frame.
    private var needsKeyFrame = true
    /// Media time of the latest key frame, and its distance from the one before, in milliseconds.
    private var lastKeyFrame: Int64?
    private var keyFrameInterval: Int64?
    /// When the latest picture is decoded and shown, in milliseconds of media time.
    private var lastPicture: (decoded: Int64, shown: Int64)?
    private var meter = IngestMeter()
    /// Notices reported so far.
    private var notices: [IngestNotice] = []
    private var effects: [Effect] = []

    /// - Parameters:
    ///   - isDecoding: whether there is a transcoder.
    ///   - seed: random; determines SSRC, first sequence number and first time stamp.
    package init(isDecoding: Bool, seed: UInt64) {
        self.isDecoding = isDecoding
        packetizer = PicturePacketizer(seed: seed)
        timestampOffset = UInt32(truncatingIfNeeded: seed >> 16)
    }

    // MARK: What comes

    /// Notes which tracks the encoder announced.
    ///
    /// `begin` then waits for them for longer, and for no others.
    package mutating func expect(audio: Bool, video: Bool, at now: MonotonicTime) -> [Effect] {
        if formats == nil { expected = (audio, video) }
        return advance(to: now)
    }

    /// Processes a video configuration, which applies to the pictures that follow.
    /// - Parameters:
    ///   - record: the codec's configuration record, possibly malformed.
    ///   - codec: one of those that are accepted.
    mutating func configure(
        video record: Span<UInt8>, of codec: FLVVideoTag.Codec, at now: MonotonicTime
    ) -> [Effect] {
        firstMedia = firstMedia ?? now
        firstVideo = firstVideo ?? now
        if let found = try? IngestVideo(codec, parsing: record) {
            configure(video: found)
        } else {
            refuse("The \(codec) configuration is invalid.")
        }
        return advance(to: now)
    }

    /// Processes a picture; ignored before its configuration.
    /// - Parameters:
    ///   - units: framed as the configuration specifies.
    ///   - isKeyFrame: as the container marks it.
    mutating func receive(
        picture units: Span<UInt8>, _ timing: PictureTiming, isKeyFrame: Bool, at now: MonotonicTime
    ) -> [Effect] {
        firstMedia = firstMedia ?? now
        show(units, timing, isKeyFrame: isKeyFrame, timeline.place(timing.decoded, of: .picture, at: now))
        return advance(to: now)
    }

    /// Notes that a picture is incomplete or missing: later pictures may refer to it, so all are dropped up to a key
    /// frame.
    mutating func losePicture() { needsKeyFrame = true }

    /// Processes an AudioSpecificConfig, which applies to the frames that follow.
    mutating func configure(audio bytes: Span<UInt8>, at now: MonotonicTime) -> [Effect] {
        guard takesSound(at: now) else { return advance(to: now) }
        configure(audio: bytes)
        return advance(to: now)
    }

    /// Processes a frame of AAC; ignored before its configuration.
    mutating func receive(sound frame: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime) -> [Effect] {
        guard takesSound(at: now), audio != nil, let frame = try? frame.bytes(0..<frame.count), !frame.isEmpty
        else { return advance(to: now) }
        let place = timeline.place(timestamp, of: .sound, at: now)
        give(
            .sound(
                IngestSound(
                    bytes: frame, timestamp: UInt32(truncatingIfNeeded: place.media &* 48),
                    captured: place.captured)))
        return advance(to: now)
    }

    /// Whether sound is accepted; without a transcoder it is dropped, and the publisher notified.
    private mutating func takesSound(at now: MonotonicTime) -> Bool {
        firstMedia = firstMedia ?? now
        guard !isDecoding else { return true }
        isSoundLeftOut = true
        if formats != nil { tell(.soundLeftOut) }
        return false
    }

    /// The refusal of a video codec that viewers cannot get.
    static func refusal(
        ofVideo codec: some CustomStringConvertible, remedy: String = "H.264 (AVC)"
    ) -> [Effect] {
        [.refuse(.unsupported("\(codec) isn't supported. Set the encoder to \(remedy)."))]
    }

    /// The refusal of an audio codec; only AAC is accepted.
    static func refusal(ofAudio codec: some CustomStringConvertible) -> [Effect] {
        [.refuse(.unsupported("\(codec) isn't supported. Set the encoder to AAC."))]
    }

    /// Counts received video, for reports.
    /// - Parameter isFrame: false for configurations.
    mutating func measure(video bytes: Int, isFrame: Bool) {
        meter.noteVideo(bytes: bytes, isFrame: isFrame)
    }

    /// Counts received sound, for reports.
    mutating func measure(audio bytes: Int) { meter.noteAudio(bytes: bytes) }

    /// Applies a video configuration, and judges whether browsers show its pictures.
    private mutating func configure(video configuration: IngestVideo) {
        if formats?.hasVideo == false { tell(.cameTooLate(isAudio: false)) }
        if formats?.codec.map({ $0 != configuration.codec }) ?? false {
            return refuse(
                "The codec changed while the stream was live. Stop the encoder, then start it with the new codec."
            )
        }
        video = configuration
        // Once pictures are converted they remain so: the decoder handles any later configuration.
        guard formats?.conversion == nil else { return }
        judge(PictureFitness(configuration))
    }

    /// Applies what is known about the pictures: refuses those that can be neither passed on nor converted.
    ///
    /// Conversion cannot begin while the session is live, because `begin` has already reported how its pictures go on.
    private mutating func judge(_ found: PictureFitness) {
        fitness = found
        switch found {
        case .asItIs, .unlessReordered, .unlessContradicted: break
        case .converted(let conversion):
            if !isDecoding {
                refuse(conversion.refusal(because: "the transcoder to convert it is off on this server"))
            } else if formats?.hasVideo == true {
                refuse(conversion.refusal(because: "conversion can't start while the stream is live"))
            }
        case .never(let conversion):
            refuse(conversion.refusal(because: "the server can't decode this kind"))
        }
    }

    private mutating func refuse(_ text: String) { effects.append(.refuse(.unsupported(text))) }

    /// Applies an audio configuration; one that decoders do not support is refused.
    private mutating func configure(audio bytes: Span<UInt8>) {
        guard let configuration = try? AACConfiguration(parsing: bytes), configuration.isCommon,
            let copy = try? bytes.bytes(0..<bytes.count), copy.count <= 64
        else {
            return effects.append(
                .refuse(.unsupported("This kind of AAC isn't supported. Set the encoder to AAC-LC.")))
        }
        if formats?.hasAudio == false { tell(.cameTooLate(isAudio: true)) }
        guard audio?.bytes != copy else { return }
        audio = (copy, configuration)
        give(.soundFormat(copy))
    }

    // MARK: Pictures

    /// Packetizes a picture, unless it has to be dropped.
    private mutating func show(
        _ bytes: Span<UInt8>, _ timing: PictureTiming, isKeyFrame: Bool, _ place: MediaTimeline.Place
    ) {
        guard let video else { return }
        guard let head = try? video.head(of: bytes, isKeyFrame: isKeyFrame) else {
            // Later pictures may refer to this one.
            needsKeyFrame = true
            return
        }
        let isKeyFrame = head.isKeyFrame
        let neededKeyFrame = needsKeyFrame
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
        guard !packets.isEmpty else {
            // Decoders cannot begin with nothing.
            needsKeyFrame = neededKeyFrame
            return
        }
        pictureNumber &+= 1
        let picture = IngestPicture(
            packets: packets, timestamp: timestamp, isKeyFrame: isKeyFrame,
            captured: place.captured + .milliseconds(min(max(timing.delay, 0), Self.longestDelay)))
        give(.picture(picture))
    }

    /// Notes what a picture's own header contains.
    private mutating func note(_ head: IngestVideo.Head) {
        seenResolution = head.resolution ?? seenResolution
        guard let video, fitness == .unlessContradicted || head.contradicts else { return }
        if case .converted? = fitness { return }
        // The header only shows that it is not 8 bits and 4:2:0. The decoder reports a format that it does not
        // support.
        judge(head.contradicts ? .converted(.colours(video.codec)) : .asItIs)
    }

    /// Detects whether pictures are shown in another order than they arrive.
    ///
    /// An encoder with B-frames delays every picture from the first one on, so that none has to be shown before it
    /// arrives. A delay of the first picture therefore reveals reordering where the configuration does not.
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

    /// Measures the distance of key frames.
    private mutating func noteKeyFrame(at media: Int64) {
        defer { lastKeyFrame = media }
        guard let lastKeyFrame else { return }
        keyFrameInterval = media - lastKeyFrame
        if media - lastKeyFrame > Self.rareKeyFrames {
            tell(.rareKeyFrames(milliseconds: media - lastKeyFrame))
        }
    }

    // MARK: What goes on

    /// Emits an effect, or keeps it until the session is open.
    private mutating func give(_ effect: Effect) {
        guard !isOpen else { return effects.append(effect) }
        heldBytes += Self.heldSize(of: effect)
        guard heldBytes > Self.heldLimit else { return held.append(effect) }
        // Sound that comes later needs its format, of which only the latest counts.
        let format = effect.isSoundFormat ? effect : held.last(where: \.isSoundFormat)
        held = [format].compactMap(\.self)
        heldBytes = held.count * Self.heldOverhead
        needsKeyFrame = true
    }

    /// Removes what was kept during a long wait and is too old for viewers: pictures before the latest key frame, and
    /// sound from more than `patience` ago.
    private mutating func forgetOld(at now: MonotonicTime) {
        let entry = held.lastIndex {
            if case .picture(let picture) = $0 { picture.isKeyFrame } else { false }
        }
        held = held.enumerated().filter { index, effect in
            switch effect {
            case .picture: index >= entry ?? 0
            case .sound(let sound): sound.captured + Self.patience >= now
            default: true
            }
        }.map(\.element)
        heldBytes = held.reduce(0) { $0 + Self.heldSize(of: $1) }
    }

    /// The memory that an effect takes while it is kept, in bytes.
    private static func heldSize(of effect: Effect) -> Int {
        switch effect {
        case .picture(let picture): picture.size + (picture.packets.count + 1) * heldOverhead
        case .sound(let sound): sound.bytes.count + heldOverhead
        default: heldOverhead
        }
    }

    /// Reports a notice, once for each code.
    private mutating func tell(_ notice: IngestNotice) {
        guard !notices.contains(where: { $0.code == notice.code }) else { return }
        notices.append(notice)
        effects.append(.notice(notice))
    }

    /// Notes that the session exists.
    /// - Returns: what was kept for it, in order.
    package mutating func open() -> [Effect] {
        isOpen = true
        defer {
            held = []
            heldBytes = 0
        }
        return held
    }

    // MARK: Time

    /// When `advance` has to be called; nil if there is nothing to wait for.
    package var deadline: MonotonicTime? {
        guard formats == nil else { return meter.deadline }
        return video != nil || audio != nil || isSoundLeftOut ? waitEnd : nil
    }

    /// When `begin` stops to wait for formats; nil before the first media.
    private var waitEnd: MonotonicTime? {
        guard let firstMedia else { return nil }
        let end = firstMedia + (lacksAnnounced ? Self.announcedPatience : Self.patience)
        // The first picture decides about conversion, however late its configuration arrived.
        guard fitness?.awaitsPicture == true, let firstVideo else { return end }
        return max(end, firstVideo + Self.patience)
    }

    /// Whether a track that the encoder announced has not arrived.
    private var lacksAnnounced: Bool {
        guard let expected else { return false }
        return expected.video && video == nil || expected.audio && audio == nil && isDecoding
    }

    /// Begins the session once its formats are known or have been waited for, and makes the reports that are due.
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

    /// Reports the formats; refuses a publisher who sends nothing but sound where sound cannot be decoded.
    private mutating func begin(at now: MonotonicTime) {
        guard video != nil || audio != nil else {
            return refuse(
                "The transcoder that converts AAC to Opus is off on this server. Publish by WHIP, or ask the "
                    + "server's operator to turn the transcoder on.")
        }
        var conversion: IngestConversion?
        if case .converted(let reason)? = fitness { conversion = reason }
        let formats = IngestFormats(
            video: video, resolution: video?.resolution ?? seenResolution, audio: audio?.configuration,
            conversion: conversion)
        self.formats = formats
        meter.begin(at: now)
        if let firstMedia, now > firstMedia + Self.patience { forgetOld(at: now) }
        effects.append(.begin(formats))
        if let conversion { tell(.converted(conversion)) }
        if isSoundLeftOut { tell(.soundLeftOut) }
    }

    /// Whether the session can begin: all formats are known, or have been waited for long enough.
    private func isComplete(at now: MonotonicTime) -> Bool {
        let hasWaited = waitEnd.map { now >= $0 } ?? false
        guard video != nil || audio != nil else { return isSoundLeftOut && hasWaited }
        if hasWaited { return true }
        // Whether pictures need conversion has to be known first: a session cannot change to it later.
        if video != nil, fitness?.awaitsPicture == true { return false }
        if video != nil, audio != nil || !isDecoding { return true }
        return expected != nil && !lacksAnnounced
    }
}

extension IngestMedia.Effect {
    fileprivate var isSoundFormat: Bool { if case .soundFormat = self { true } else { false } }
}
