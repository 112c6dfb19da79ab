import Wire

/// Whether browsers can show pictures with a given configuration.
enum PictureFitness: Equatable {
    /// Browsers show the pictures unchanged.
    case asItIs
    /// The pictures have to be re-encoded.
    case converted(IngestConversion)
    /// Browsers show the pictures unless they are reordered, which the configuration does not reveal.
    case unlessReordered
    /// Browsers show the pictures unless these exceed the bits or chroma of the configuration.
    case unlessContradicted
    /// The transcoder cannot decode the pictures either.
    case never(IngestConversion)

    /// Whether the first picture decides.
    var awaitsPicture: Bool { self == .unlessReordered || self == .unlessContradicted }

    /// Judges a configuration by codec, profile, bit depth and chroma.
    init(_ video: IngestVideo) {
        switch video {
        case .h264(let configuration): self.init(configuration)
        case .hevc(let configuration):
            let isDecodable = Self.isDecodable(
                chromaFormat: configuration.chromaFormat, bitDepth: configuration.bitDepth)
            self = isDecodable ? .converted(.codec(.hevc)) : .never(.colours(.hevc))
        case .vp9(let configuration):
            switch (configuration.profile, configuration.bitDepth) {
            case (0, _): self = .unlessContradicted
            case (1, _), (2, 10): self = .converted(.colours(.vp9))
            default: self = .never(.colours(.vp9))
            }
        case .av1(let configuration):
            switch (configuration.profile, configuration.bitDepth, configuration.isMonochrome) {
            case (0, 8, _): self = .asItIs
            case (0, 10, false), (1, 8, false): self = .converted(.colours(.av1))
            default: self = .never(.colours(.av1))
            }
        }
    }

    /// The profiles that browsers decode: Baseline, Main and High.
    private static let profiles: Set<UInt8> = [66, 77, 100]

    /// Judges H.264; without a readable parameter set, 8 bits and 4:2:0 are assumed.
    private init(_ configuration: AVCConfiguration) {
        let pictures = configuration.pictures
        let (chroma, depth) = (pictures?.chromaFormat ?? 1, pictures?.bitDepth ?? 8)
        let profile = configuration.profile
        guard !Self.profiles.contains(profile) || chroma > 1 || depth > 8 else {
            guard pictures?.mayHaveFields != true else {
                self = .converted(.interlacing)
                return
            }
            switch pictures?.reorderedPictures {
            case nil: self = .unlessReordered
            case 0: self = .asItIs
            default: self = .converted(.reordering)
            }
            return
        }
        let isDecodable = pictures != nil && Self.isDecodable(chromaFormat: chroma, bitDepth: depth)
        self = isDecodable ? .converted(.profile(profile)) : .never(.profile(profile))
    }

    /// Whether the transcoder can decode these samples; monochrome is not supported.
    /// - Parameter chromaFormat: `chroma_format_idc`; 0 is monochrome, 1 is 4:2:0.
    private static func isDecodable(chromaFormat: UInt8, bitDepth: Int) -> Bool {
        chromaFormat == 1 ? [8, 10].contains(bitDepth) : chromaFormat > 1 && bitDepth == 8
    }
}
