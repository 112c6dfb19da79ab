/// The body of a video message: which codec, what of it, and where that lies.
///
/// Both the header of 2008 and the one with a FourCC of Enhanced RTMP.
/// - Source: Adobe, Video File Format 10.1, annex E.4.3; Enhanced RTMP v1 and v2, `ExVideoTagHeader`.
package struct FLVVideoTag: Equatable, Sendable {
    /// By the names that people know.
    package enum Codec: Equatable, Sendable, CustomStringConvertible {
        case h264
        case hevc
        case av1
        case vp9
        case vp8
        /// By its number in the header of 2008.
        case numbered(UInt8)
        /// By a FourCC that is not known.
        case named(UInt32)

        package var description: String {
            switch self {
            case .h264: "H.264"
            case .hevc: "HEVC"
            case .av1: "AV1"
            case .vp9: "VP9"
            case .vp8: "VP8"
            case .numbered(let number): "codec \(number)"
            case .named(let name): "codec \(String(name, radix: 16))"
            }
        }
    }

    package let codec: Codec
    package let content: FLVContent
    package let isKeyFrame: Bool
    /// From decoding to showing, in milliseconds.
    package let compositionTime: Int32
    package let body: Range<Int>

    /// - Source: E.4.3.1, `FrameType`.
    private enum FrameType {
        static let key: UInt8 = 1
        static let inter: UInt8 = 2
        static let command: UInt8 = 5
    }

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        let first = try bytes.uint8(at: 0)
        if first & 0x80 != 0 {
            try self.init(enhanced: first, bytes)
        } else {
            try self.init(plain: first, bytes)
        }
    }

    private init(plain first: UInt8, _ bytes: Span<UInt8>) throws(WireError) {
        let frameType = first >> 4
        isKeyFrame = frameType == FrameType.key
        switch first & 0x0F {
        case 7: codec = .h264
        // Not Adobe's, but common in China.
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
        let packet = first & 0x0F
        isKeyFrame = frameType == FrameType.key
        codec = try Codec(fourCC: bytes.uint32(at: 1))
        let hasCompositionTime = packet == 1 && (codec == .h264 || codec == .hevc)
        compositionTime = hasCompositionTime ? try Self.signed(bytes.uint24(at: 5)) : 0
        body = (hasCompositionTime ? 8 : 5)..<bytes.count
        switch packet {
        case 0: content = .configuration
        case 1, 3: content = frameType == FrameType.command ? .other : .frame
        default: content = .other
        }
    }

    /// The body that tells decoders of H.264 how to begin.
    /// - Parameter record: an AVCDecoderConfigurationRecord.
    package static func h264(configuration record: [UInt8]) -> [UInt8] {
        [FrameType.key << 4 | 7, 0, 0, 0, 0] + record
    }

    /// The body of a picture of H.264 that is shown when it is decoded.
    /// - Parameter units: each behind its length in four bytes.
    package static func h264(units: [UInt8], isKeyFrame: Bool) -> [UInt8] {
        [(isKeyFrame ? FrameType.key : FrameType.inter) << 4 | 7, 1, 0, 0, 0] + units
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
