import Wire

/// The configuration of a publisher's video, and how its pictures become RTP payloads.
enum IngestVideo: Equatable, Sendable {
    case h264(AVCConfiguration)
    case hevc(HEVCConfiguration)
    case vp9(VP9Configuration)
    case av1(AV1Configuration)

    /// The properties of a picture that have to be known before it is packetized.
    struct Head {
        /// Whether a decoder can begin with it.
        let isKeyFrame: Bool
        /// The size in the picture's own header, where the configuration has none.
        var resolution: VideoResolution?
        /// The parsed header of a VP9 frame, kept so that it is parsed once.
        fileprivate var vp9: VP9FrameHeader?
        /// The parsed units of an AV1 picture, kept for the same reason.
        fileprivate var units: AV1Units?

        /// Whether the picture has more bits or chroma than its configuration.
        var contradicts: Bool { vp9.map { $0.profile != 0 } ?? false }
    }

    /// Parses a configuration record.
    /// - Parameters:
    ///   - codec: the codec of the record.
    ///   - record: comes from the network.
    /// - Throws: for a malformed record, and for a codec that is not accepted.
    init(_ codec: FLVVideoTag.Codec, parsing record: Span<UInt8>) throws(WireError) {
        switch codec {
        case .h264: self = .h264(try AVCConfiguration(parsing: record))
        case .hevc: self = .hevc(try HEVCConfiguration(parsing: record))
        case .vp9: self = .vp9(try VP9Configuration(parsing: record))
        case .av1: self = .av1(try AV1Configuration(parsing: record))
        case .vp8, .numbered, .named: throw .invalid(.unforwardedCodec)
        }
    }

    var codec: VideoCodec {
        switch self {
        case .h264: .h264
        case .hevc: .hevc
        case .vp9: .vp9
        case .av1: .av1
        }
    }

    /// The profile in the codec's own numbering.
    var profile: UInt8 {
        switch self {
        case .h264(let configuration): configuration.profile
        case .hevc(let configuration): configuration.profile
        case .vp9(let configuration): configuration.profile
        case .av1(let configuration): configuration.profile
        }
    }

    /// Nil where the configuration does not contain the size.
    var resolution: VideoResolution? {
        switch self {
        case .h264(let configuration): configuration.pictures?.resolution
        case .hevc(let configuration): configuration.resolution
        case .vp9: nil
        case .av1(let configuration): configuration.resolution
        }
    }

    /// Parses the beginning of a picture.
    /// - Parameter isKeyFrame: as the container marks it; VP9 and AV1 contain it themselves.
    func head(of picture: Span<UInt8>, isKeyFrame: Bool) throws(WireError) -> Head {
        switch self {
        case .h264, .hevc: return Head(isKeyFrame: isKeyFrame)
        case .vp9:
            let header = try VP9FrameHeader(parsing: picture)
            return Head(isKeyFrame: header.isKeyFrame, resolution: header.resolution, vp9: header)
        case .av1:
            let units = try AV1Units(parsing: picture)
            return Head(isKeyFrame: units.isKeyFrame, units: units)
        }
    }

    /// Splits a picture into RTP payloads; empty if it contains nothing that decoders need.
    /// - Parameters:
    ///   - isConverted: whether a decoder may begin at each key frame, even one that is not an IDR picture.
    ///   - number: of the picture.
    func payloads(
        of picture: Span<UInt8>, _ head: Head, isConverted: Bool, number: UInt16
    ) throws(WireError) -> [[UInt8]] {
        switch self {
        case .h264(let configuration):
            return try H264Payloads.payloads(
                of: picture, configuration, needsParameters: isConverted && head.isKeyFrame)
        case .hevc(let configuration):
            return try HEVCPayloads.payloads(of: picture, configuration, needsParameters: head.isKeyFrame)
        case .vp9:
            guard let header = head.vp9 else { return [] }
            return VP9Payloads.payloads(of: picture, header, number: number)
        case .av1(let configuration):
            guard let units = head.units else { return [] }
            return AV1Payloads.payloads(of: units, sequenceHeader: configuration.sequenceHeader)
        }
    }
}

extension VideoCodec {
    /// The common name, for texts.
    package var name: String {
        switch self {
        case .vp8: "VP8"
        case .vp9: "VP9"
        case .h264: "H.264"
        case .av1: "AV1"
        case .hevc: "HEVC"
        }
    }
}
