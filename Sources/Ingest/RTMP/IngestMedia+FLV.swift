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

    /// Takes a video message's body in; what is no FLV tag is passed over.
    /// - Parameter timestamp: in milliseconds, on the encoder's clock.
    package mutating func receive(
        video bytes: Span<UInt8>, timestamp: UInt32, at now: MonotonicTime
    ) -> [Effect] {
        // An empty message says nothing; encoders send them to keep connections alive.
        guard let tag = try? FLVVideoTag(parsing: bytes) else { return [] }
        guard tag.codec == .h264 else { return Self.refusal(ofVideo: tag.codec) }
        measure(video: bytes.count, isFrame: tag.content == .frame)
        let body = bytes.extracting(tag.body)
        switch tag.content {
        case .configuration: return configure(video: try? AVCConfiguration(parsing: body), at: now)
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
