import Wire

/// Whether what a configuration announces can be shown by browsers.
enum PictureFitness: Equatable {
    case asItIs
    case converted(IngestConversion)
    /// Browsers show it unless pictures are reordered, which only the pictures tell.
    case unlessReordered
    /// The same unless they are of more than the configuration says.
    case unlessContradicted
    /// Nothing here can decode it.
    case never(IngestConversion)

    /// Whether the first picture has to be seen.
    var awaitsPicture: Bool { self == .unlessReordered || self == .unlessContradicted }

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

    /// Baseline, main and high, which browsers decode.
    private static let profiles: Set<UInt8> = [66, 77, 100]

    private init(_ configuration: AVCConfiguration) {
        let pictures = configuration.pictures
        let (chroma, depth) = (pictures?.chromaFormat ?? 1, pictures?.bitDepth ?? 8)
        let profile = configuration.profile
        guard !Self.profiles.contains(profile) || chroma > 1 || depth > 8 else {
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

    /// What the transcoder makes pictures of; nothing without colours.
    private static func isDecodable(chromaFormat: UInt8, bitDepth: Int) -> Bool {
        chromaFormat == 1 ? [8, 10].contains(bitDepth) : chromaFormat > 1 && bitDepth == 8
    }
}
