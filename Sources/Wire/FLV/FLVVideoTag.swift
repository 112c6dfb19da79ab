/// The header of a video message: codec, kind of content, and where the content is.
///
/// Reads both the original header and the header with a FourCC from Enhanced RTMP.
/// - Source: Adobe, Video File Format 10.1, annex E.4.3; Enhanced RTMP v1 and v2, `ExVideoTagHeader`.
package struct FLVVideoTag: Equatable, Sendable {
    /// Described by common names, for messages to operators.
    package enum Codec: Equatable, Sendable, CustomStringConvertible {
        case h264
        case hevc
        case av1
        case vp9
        case vp8
        /// A codec ID of the original FLV header.
        case numbered(UInt8)
        /// An unknown FourCC.
        case named(UInt32)

        package var description: String {
            switch self {
            case .h264: "H.264"
            case .hevc: "HEVC"
            case .av1: "AV1"
            case .vp9: "VP9"
            case .vp8: "VP8"
            case .numbered(let number): "codec \(number)"
            case .named(let name): "codec \(FLVVideoTag.text(ofFourCC: name))"
            }
        }
    }

    /// The codec, including codecs that are not supported.
    package let codec: Codec
    package let content: FLVContent
    package let isKeyFrame: Bool
    /// Whether it contains a command to players instead of a picture, whatever the codec.
    package let isCommand: Bool
    /// Whether it contains only tracks besides the first, which are ignored.
    package let isOtherTrack: Bool
    /// Milliseconds from decoding to presentation.
    package let compositionTime: Int32
    /// The content after the tag's own header; empty for a command.
    package let body: Range<Int>

    /// - Source: E.4.3.1, `FrameType`.
    private enum FrameType {
        static let key: UInt8 = 1
        static let inter: UInt8 = 2
        static let command: UInt8 = 5
    }

    /// - Source: Enhanced RTMP v1, `PacketType`.
    private enum PacketType {
        static let sequenceStart: UInt8 = 0
        /// Pictures of H.264 and HEVC, preceded by their composition time.
        static let codedFrames: UInt8 = 1
        /// Pictures that are presented when they are decoded.
        static let codedFramesX: UInt8 = 3
        static let metadata: UInt8 = 4
        /// One or more tracks, with numbers.
        static let multitrack: UInt8 = 6
    }

    /// Whether a body has the header of Enhanced RTMP.
    package static func isEnhanced(_ bytes: Span<UInt8>) -> Bool {
        bytes.isEmpty ? false : bytes[0] & 0x80 != 0
    }

    /// Parses either header.
    /// - Throws: `.truncated` if it is incomplete.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        let first = try bytes.uint8(at: 0)
        if Self.isEnhanced(bytes) {
            try self.init(enhanced: first, bytes)
        } else {
            try self.init(plain: first, bytes)
        }
    }

    private init(plain first: UInt8, _ bytes: Span<UInt8>) throws(WireError) {
        let frameType = first >> 4
        isKeyFrame = frameType == FrameType.key
        isCommand = frameType == FrameType.command
        isOtherTrack = false
        switch first & 0x0F {
        case 7: codec = .h264
        // Not defined by Adobe, but common in China.
        case 12: codec = .hevc
        case let number:
            codec = .numbered(number)
            content = .other
            compositionTime = 0
            body = 1..<bytes.count
            return
        }
        guard frameType != FrameType.command else {
            content = .other
            compositionTime = 0
            body = bytes.count..<bytes.count
            return
        }
        let packet = try bytes.uint8(at: 1)
        compositionTime = try Self.signed(bytes.uint24(at: 2))
        content = packet == 0 ? .configuration : packet == 1 ? .frame : .other
        body = 5..<bytes.count
    }

    private init(enhanced first: UInt8, _ bytes: Span<UInt8>) throws(WireError) {
        let frameType = first >> 4 & 7
        isKeyFrame = frameType == FrameType.key
        isCommand = frameType == FrameType.command && first & 0x0F != PacketType.metadata
        guard !isCommand else {
            // In version 2 the command is where version 1 has a FourCC.
            codec = (try? bytes.uint32(at: 1)).map { Codec(fourCC: $0) } ?? .named(0)
            content = .other
            compositionTime = 0
            body = bytes.count..<bytes.count
            isOtherTrack = false
            return
        }
        let header = try FLVExtendedHeader(parsing: bytes, multitrack: PacketType.multitrack)
        isOtherTrack = header.isOtherTrack
        codec = Codec(fourCC: header.fourCC)
        guard !isOtherTrack else {
            content = .other
            compositionTime = 0
            body = header.body
            return
        }
        var start = header.body.lowerBound
        if header.packetType == PacketType.codedFrames, codec == .h264 || codec == .hevc {
            guard header.body.count >= 3 else { throw .truncated }
            compositionTime = try Self.signed(bytes.uint24(at: start))
            start += 3
        } else {
            compositionTime = 0
        }
        body = start..<header.body.upperBound
        switch header.packetType {
        case PacketType.sequenceStart: content = .configuration
        case PacketType.codedFrames, PacketType.codedFramesX: content = .frame
        default: content = .other
        }
    }

    /// The body of a message with the decoder configuration of H.264.
    /// - Parameter record: an AVCDecoderConfigurationRecord.
    package static func h264(configuration record: [UInt8]) -> [UInt8] {
        [FrameType.key << 4 | 7, 0, 0, 0, 0] + record
    }

    /// The body of a message with one H.264 picture that is presented when it is decoded.
    /// - Parameter units: NAL units, each with a length field of four bytes.
    package static func h264(units: [UInt8], isKeyFrame: Bool) -> [UInt8] {
        [(isKeyFrame ? FrameType.key : FrameType.inter) << 4 | 7, 1, 0, 0, 0] + units
    }

    /// The FourCC as text; in hexadecimal if it contains other characters than letters and digits.
    static func text(ofFourCC name: UInt32) -> String {
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: name >> $0) }
        let isPlain = bytes.allSatisfy { byte in
            [48...57, 65...90, 97...122].contains { ($0 as ClosedRange<UInt8>).contains(byte) }
        }
        return isPlain ? String(decoding: bytes, as: UTF8.self) : "0x" + String(name, radix: 16)
    }

    private static func signed(_ value: UInt32) -> Int32 { Int32(bitPattern: value << 8) >> 8 }
}

extension FLVVideoTag.Codec {
    fileprivate init(fourCC: UInt32) {
        self =
            switch fourCC {
            case 0x6176_6331: .h264
            case 0x6876_6331: .hevc
            case 0x6176_3031: .av1
            case 0x7670_3039: .vp9
            case 0x7670_3038: .vp8
            default: .named(fourCC)
            }
    }
}
