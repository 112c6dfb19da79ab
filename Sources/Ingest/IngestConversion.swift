import Wire

/// Why a picture cannot go to browsers as it is, and is decoded and encoded here.
package enum IngestConversion: Equatable, Sendable {
    /// Pictures are shown in another order than they come.
    case reordering
    /// `profile_idc`, of 10 bits or with more colours than 4:2:0.
    case profile(UInt8)

    /// What to set in the encoder, so that it need not be done.
    var remedy: String {
        switch self {
        case .reordering:
            "set B-frames to 0 (x264: tune zerolatency), or the profile to baseline"
        case .profile: "set the profile to baseline, main or high, with 8 bits and 4:2:0"
        }
    }

    private var fact: String {
        switch self {
        case .reordering: "The encoder sends B-frames, which browsers do not show"
        case .profile(let number): "Browsers do not show H.264 of profile \(number)"
        }
    }

    /// For whoever set up the encoder, where it is done.
    var advice: String {
        "\(fact), so the picture is made anew here: that costs sharpness, time and this server's processor. "
            + "To have it passed on as it is, \(remedy)."
    }

    /// For whoever set up the encoder, where it cannot be done.
    /// - Parameter why: what stands against it, as a clause.
    package func refusal(because why: String) -> String { "\(fact), and \(why): \(remedy)." }
}

/// Whether what a configuration announces can be shown by browsers.
enum PictureFitness: Equatable {
    case asItIs
    case converted(IngestConversion)
    /// Browsers show it unless pictures are reordered, which only the pictures tell.
    case unlessReordered
    /// Nothing here can decode it.
    case never(profile: UInt8)

    /// Baseline, main and high, which browsers decode.
    private static let profiles: Set<UInt8> = [66, 77, 100]

    init(_ configuration: AVCConfiguration) {
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
        let isDecodable =
            pictures != nil && (chroma == 1 ? [8, 10].contains(depth) : chroma > 1 && depth == 8)
        self = isDecodable ? .converted(.profile(profile)) : .never(profile: profile)
    }
}
