import Wire

/// Why pictures cannot be passed to browsers unchanged, so that the transcoder decodes and re-encodes them.
package enum IngestConversion: Equatable, Sendable {
    /// The encoder uses B-frames: pictures are shown in another order than they are sent, which WebRTC does not
    /// support.
    case reordering
    /// The encoder sends interlaced H.264, which OpenH264 and most decoders of phones do not support.
    case interlacing
    /// H.264 of this `profile_idc`, whose profile, bit depth or chroma sampling browsers do not show.
    case profile(UInt8)
    /// More than 8 bits or other chroma than 4:2:0 in a codec that browsers otherwise show.
    case colours(VideoCodec)
    /// A codec that hardly any browser plays by WebRTC, whatever its profile.
    case codec(VideoCodec)

    /// The encoder settings that make re-encoding unnecessary.
    var remedy: String {
        switch self {
        case .reordering:
            "set B-frames to 0 (x264: tune zerolatency) or the profile to baseline"
        case .interlacing: "set camera and encoder to progressive video, such as 1080p instead of 1080i"
        case .profile: "set the profile to baseline, main or high, with 8 bits and 4:2:0"
        case .colours: "set the encoder to 8 bits and 4:2:0 (NV12 or I420)"
        case .codec: "set the encoder to AV1, VP9, or H.264 without B-frames"
        }
    }

    /// What the publisher sends, as the first clause of the advice and of the refusal.
    private var fact: String {
        switch self {
        case .reordering: "The encoder sends B-frames, which browsers can't play"
        case .interlacing: "The encoder sends interlaced video, which some browsers can't play"
        case .profile(let number): "Browsers can't play H.264 with profile \(number)"
        case .colours(let codec):
            "Some browsers can't play \(codec.name) with more than 8 bits or chroma other than 4:2:0"
        case .codec(let codec): "Few browsers can play \(codec.name) live"
        }
    }

    /// Advice for the publisher where pictures are re-encoded.
    var advice: String {
        "\(fact), so the server converts the video. That costs quality, latency and CPU time. "
            + "To avoid this, \(remedy)."
    }

    /// The error text for the publisher where pictures cannot be re-encoded.
    /// - Parameter why: the obstacle, as a clause.
    package func refusal(because why: String) -> String { "\(fact), and \(why). To fix this, \(remedy)." }
}
