import Base
import Wire

/// Media received by RTMP, whose messages contain FLV tags.
extension IngestMedia {
    /// Processes the encoder's metadata; only the announced tracks matter.
    package mutating func receive(metadata members: [AMF0Value.Member], at now: MonotonicTime) -> [Effect] {
        guard !members.isEmpty else { return advance(to: now) }
        let object = AMF0Value.object(members)
        return expect(
            audio: Self.isPresent(object[name: "audiocodecid"]),
            video: Self.isPresent(object[name: "videocodecid"]), at: now)
    }

    /// Whether a codec field names a codec, by number or by FourCC.
    private static func isPresent(_ codec: AMF0Value?) -> Bool {
        switch codec {
        case .number(let number)?: number != 0
        case .string(let text)?: !text.isEmpty
        default: false
        }
    }

    /// The accepted video codecs, including those that are only converted.
    private static let taken: [FLVVideoTag.Codec] = [.h264, .hevc, .vp9, .av1]

    /// The accepted FourCCs, as announced in the answer to `connect`.
    static func fourCCs(isDecoding: Bool) -> [String] {
        ["avc1", "av01", "vp09"] + (isDecoding ? ["hvc1"] : [])
    }

    /// Processes the body of a video message.
    ///
    /// A body that is not an FLV tag is ignored, but a truncated tag of Enhanced RTMP is refused.
    /// - Parameter timestamp: in milliseconds, on the encoder's clock.
    package mutating func receive(
        video bytes: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime
    ) -> [Effect] {
        // Encoders send empty messages to keep connections alive.
        guard let tag = try? FLVVideoTag(parsing: bytes) else {
            guard FLVVideoTag.isEnhanced(bytes) else { return [] }
            return [
                .refuse(.unsupported("An Enhanced RTMP video message is invalid: its header is cut off."))
            ]
        }
        guard !tag.isCommand, !tag.isOtherTrack else { return advance(to: now) }
        guard Self.taken.contains(tag.codec) else {
            return Self.refusal(ofVideo: tag.codec, remedy: "H.264 (AVC), AV1, VP9 or HEVC")
        }
        measure(video: bytes.count, isFrame: tag.content == .frame)
        let body = bytes.extracting(tag.body)
        switch tag.content {
        case .configuration: return configure(video: body, of: tag.codec, at: now)
        case .frame:
            let timing = PictureTiming(decoded: timestamp, delay: tag.compositionTime)
            return receive(picture: body, timing, isKeyFrame: tag.isKeyFrame, at: now)
        case .other: return advance(to: now)
        }
    }

    /// Processes the body of an audio message; one that is not an FLV tag is ignored.
    /// - Parameter timestamp: in milliseconds, on the encoder's clock.
    package mutating func receive(
        audio bytes: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime
    ) -> [Effect] {
        guard let tag = try? FLVAudioTag(parsing: bytes) else { return [] }
        guard !tag.isOtherTrack else { return advance(to: now) }
        guard tag.codec == .aac else { return Self.refusal(ofAudio: tag.codec) }
        measure(audio: bytes.count)
        let body = bytes.extracting(tag.body)
        switch tag.content {
        case .configuration: return configure(audio: body, at: now)
        case .frame: return receive(sound: body, timestamp: timestamp, at: now)
        case .other: return advance(to: now)
        }
    }
}
