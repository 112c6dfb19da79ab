import Wire

/// Why a picture cannot go to browsers as it is, and is decoded and encoded here.
package enum IngestConversion: Equatable, Sendable {
    /// Pictures are shown in another order than they come.
    case reordering
    /// `profile_idc` of H.264, of 10 bits or with more colours than 4:2:0.
    case profile(UInt8)
    /// The same of another codec, which browsers show with 8 bits and 4:2:0.
    case colours(VideoCodec)
    /// One that hardly a browser shows, whatever its pictures are like.
    case codec(VideoCodec)

    /// What to set in the encoder, so that it need not be done.
    var remedy: String {
        switch self {
        case .reordering:
            "set B-frames to 0 (x264: tune zerolatency), or the profile to baseline"
        case .profile: "set the profile to baseline, main or high, with 8 bits and 4:2:0"
        case .colours: "set the encoder to 8 bits and 4:2:0 (NV12 or I420)"
        case .codec: "set the encoder to AV1, VP9, or H.264 without B-frames"
        }
    }

    private var fact: String {
        switch self {
        case .reordering: "The encoder sends B-frames, which browsers do not show"
        case .profile(let number): "Browsers do not show H.264 of profile \(number)"
        case .colours(let codec):
            "Not all browsers show \(codec.name) of more than 8 bits or with other colours than 4:2:0"
        case .codec(let codec): "Hardly a browser shows \(codec.name) live"
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
