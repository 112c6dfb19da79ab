/// A problem of a publisher's media that the person who set up the encoder should know.
package enum IngestNotice: Equatable, Sendable {
    /// Browsers do not show the pictures, so they are re-encoded.
    case converted(IngestConversion)
    /// Key frames are rare, and viewers wait for one where the cache does not contain any.
    case rareKeyFrames(milliseconds: Int64)
    /// Sound is dropped, because there is no transcoder.
    case soundLeftOut
    /// A track began after the session did, and is dropped.
    case cameTooLate(isAudio: Bool)

    /// Stable identifier for logs and the API.
    package var code: String {
        switch self {
        case .converted(.reordering): "b-frames"
        case .converted(.profile), .converted(.colours), .converted(.interlacing): "profile"
        case .converted(.codec): "codec"
        case .rareKeyFrames: "key-frames-rare"
        case .soundLeftOut: "sound-left-out"
        case .cameTooLate(isAudio: true): "sound-too-late"
        case .cameTooLate(isAudio: false): "picture-too-late"
        }
    }

    /// Explanation for people: the problem, its effect, and the remedy.
    package var text: String {
        switch self {
        case .converted(let conversion): conversion.advice
        case .rareKeyFrames(let milliseconds):
            "Key frames are \(milliseconds / 1_000) s apart, so viewers may wait that long for the video. Set the "
                + "encoder's key frame interval to 2 s."
        case .soundLeftOut:
            "Viewers get no sound: the transcoder that converts AAC to Opus is off on this server."
        case .cameTooLate(let isAudio):
            "\(isAudio ? "The sound" : "The video") started after the stream went live, so viewers don't get it. "
                + "Stop the encoder, then start it with both sound and video."
        }
    }
}
