/// The header of an audio message: codec, kind of content, and where the content is.
/// - Source: Adobe, Video File Format 10.1, annex E.4.2; Enhanced RTMP v2, `ExAudioTagHeader`.
package struct FLVAudioTag: Equatable, Sendable {
    /// Described by common names, for messages to operators.
    package enum Codec: Equatable, Sendable, CustomStringConvertible {
        case aac
        case opus
        /// A codec ID of the original FLV header.
        case numbered(UInt8)
        /// An unknown FourCC.
        case named(UInt32)

        package var description: String {
            switch self {
            case .aac: "AAC"
            case .opus: "Opus"
            case .numbered(2), .numbered(14): "MP3"
            case .numbered(7), .numbered(8): "G.711"
            case .numbered(11): "Speex"
            case .numbered(let number): "codec \(number)"
            case .named(let name): "codec \(FLVVideoTag.text(ofFourCC: name))"
            }
        }
    }

    /// The codec, including codecs that are not supported.
    package let codec: Codec
    /// Always `.frame` for codecs that are identified by number.
    package let content: FLVContent
    /// Whether it contains only tracks besides the first, which are ignored.
    package let isOtherTrack: Bool
    /// The content after the tag's own header.
    package let body: Range<Int>

    /// The packet type of Enhanced RTMP for one or more tracks with numbers.
    private static let multitrack: UInt8 = 5

    /// Parses the header.
    /// - Throws: `.truncated` if it is incomplete.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        let first = try bytes.uint8(at: 0)
        switch first >> 4 {
        case 9:
            let header = try FLVExtendedHeader(parsing: bytes, multitrack: Self.multitrack)
            codec = Codec(fourCC: header.fourCC)
            isOtherTrack = header.isOtherTrack
            content =
                switch header.packetType {
                case 0 where !isOtherTrack: .configuration
                case 1 where !isOtherTrack: .frame
                default: .other
                }
            body = header.body
        case 10:
            codec = .aac
            let packet = try bytes.uint8(at: 1)
            content = packet == 0 ? .configuration : packet == 1 ? .frame : .other
            isOtherTrack = false
            body = 2..<bytes.count
        case let number:
            codec = .numbered(number)
            content = .frame
            isOtherTrack = false
            body = 1..<bytes.count
        }
    }

    /// AAC; its other bits have fixed values, whatever the audio is.
    private static let aac: UInt8 = 0xAF

    /// The body of a message with the decoder configuration of AAC.
    /// - Parameter configuration: an AudioSpecificConfig.
    package static func aac(configuration: [UInt8]) -> [UInt8] { [aac, 0] + configuration }

    /// The body of a message with one AAC frame, without an ADTS header.
    package static func aac(frame: [UInt8]) -> [UInt8] { [aac, 1] + frame }
}

extension FLVAudioTag.Codec {
    fileprivate init(fourCC: UInt32) {
        self =
            switch fourCC {
            case 0x6D70_3461: .aac
            case 0x4F70_7573: .opus
            default: .named(fourCC)
            }
    }
}
