import Wire

/// Pictures of a publisher: what decoders of them have to know, and how they go on.
enum IngestVideo: Equatable, Sendable {
    case h264(AVCConfiguration)
    case hevc(HEVCConfiguration)
    case vp9(VP9Configuration)
    case av1(AV1Configuration)

    /// A picture, as far as it has to be known before it is cut.
    struct Head {
        /// Whether a decoder can begin with it.
        let isKeyFrame: Bool
        /// What it says of itself that its configuration does not.
        var resolution: VideoResolution?
        /// Of VP9.
        fileprivate var vp9: VP9FrameHeader?
        fileprivate var units: AV1Units?

        /// Whether it is of more bits, or more colours, than the configuration says.
        var contradicts: Bool { vp9.map { $0.profile != 0 } ?? false }
    }

    /// - Parameter codec: of which `record` is the configuration.
    /// - Throws: for a record that makes no sense, or of a codec that is not taken.
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

    /// As the codec numbers them.
    var profile: UInt8 {
        switch self {
        case .h264(let configuration): configuration.profile
        case .hevc(let configuration): configuration.profile
        case .vp9(let configuration): configuration.profile
        case .av1(let configuration): configuration.profile
        }
    }

    /// Nil where it is not told.
    var resolution: VideoResolution? {
        switch self {
        case .h264(let configuration): configuration.pictures?.resolution
        case .hevc(let configuration): configuration.resolution
        case .vp9: nil
        case .av1(let configuration): configuration.resolution
        }
    }

    /// What a picture is.
    /// - Parameter isKeyFrame: as its container says; some codecs say it themselves.
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

    /// A picture's payloads; empty for one of nothing that decoders need.
    /// - Parameters:
    ///   - isConverted: whether a decoder begins with each key frame, whatever kind of picture it is.
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
    /// By the name that people know.
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
