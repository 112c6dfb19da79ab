/// Something about what a publisher sends that whoever set up the encoder should know.
package enum IngestNotice: Equatable, Sendable {
    /// What browsers do not show is made anew.
    case converted(IngestConversion)
    /// Viewers wait for key frames where the cache does not hold one.
    case rareKeyFrames(milliseconds: Int64)
    /// Sound that nobody can be given, because nothing is decoded here.
    case soundLeftOut
    /// Sound, or a picture, that began when the session was there already.
    case cameTooLate(isAudio: Bool)

    /// For logs and programs.
    package var code: String {
        switch self {
        case .converted(.reordering): "b-frames"
        case .converted(.profile), .converted(.colours): "profile"
        case .converted(.codec): "codec"
        case .rareKeyFrames: "key-frames-rare"
        case .soundLeftOut: "sound-left-out"
        case .cameTooLate(isAudio: true): "sound-too-late"
        case .cameTooLate(isAudio: false): "picture-too-late"
        }
    }

    /// For people: what is so, why it matters, and what to do.
    package var text: String {
        switch self {
        case .converted(let conversion): conversion.advice
        case .rareKeyFrames(let milliseconds):
            "Key frames are \(milliseconds / 1_000) s apart, and viewers may wait so long for a picture: set the "
                + "encoder's key-frame interval to 2 s."
        case .soundLeftOut:
            "The sound is left out: AAC becomes Opus in the transcoder, which is off on this server."
        case .cameTooLate(let isAudio):
            "\(isAudio ? "The sound" : "The picture") began when the stream was live already, and is left out: stop "
                + "the encoder, and start it with both."
        }
    }
}
