import Base
import Wire

/// What comes by RTMP: messages that hold FLV's tags.
extension IngestMedia {
    /// Takes in what the encoder says of itself.
    package mutating func receive(metadata members: [AMF0Value.Member], at now: MonotonicTime) -> [Effect] {
        guard !members.isEmpty else { return advance(to: now) }
        let object = AMF0Value.object(members)
        return expect(
            audio: Self.isPresent(object[name: "audiocodecid"]),
            video: Self.isPresent(object[name: "videocodecid"]), at: now)
    }

    private static func isPresent(_ codec: AMF0Value?) -> Bool {
        switch codec {
        case .number(let number)?: number != 0
        case .string(let text)?: !text.isEmpty
        default: false
        }
    }

    /// Codecs of pictures, whether they go on as they are or are made anew.
    private static let taken: [FLVVideoTag.Codec] = [.h264, .hevc, .vp9, .av1]

    /// What is taken by FourCC, as `connect` is answered.
    /// - Parameter isDecoding: whether there is a transcoder, without which HEVC is refused.
    static func fourCCs(isDecoding: Bool) -> [String] {
        ["avc1", "av01", "vp09"] + (isDecoding ? ["hvc1"] : [])
    }

    /// Takes a video message's body in; what is no FLV tag is passed over, one of Enhanced RTMP that is cut off is
    /// refused.
    /// - Parameter timestamp: in milliseconds, on the encoder's clock.
    package mutating func receive(
        video bytes: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime
    ) -> [Effect] {
        // An empty message says nothing; encoders send them to keep connections alive.
        guard let tag = try? FLVVideoTag(parsing: bytes) else {
            guard FLVVideoTag.isEnhanced(bytes) else { return [] }
            return [
                .refuse(.unsupported("A picture of Enhanced RTMP makes no sense: its header is cut off."))
            ]
        }
        guard !tag.isCommand else { return advance(to: now) }
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

    /// The same of sound.
    package mutating func receive(
        audio bytes: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime
    ) -> [Effect] {
        guard let tag = try? FLVAudioTag(parsing: bytes) else { return [] }
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
