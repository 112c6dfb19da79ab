/// The kind of content in the body of an audio or video message.
package enum FLVContent: Equatable, Sendable {
    /// The decoder configuration, such as an AudioSpecificConfig or an AVCDecoderConfigurationRecord.
    case configuration
    case frame
    /// The end of a sequence, or something that decoders do not need.
    case other
}
