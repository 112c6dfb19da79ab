/// What the body of an FLV tag with sound or pictures is.
package enum FLVContent: Equatable, Sendable {
    /// The decoder's configuration: an AudioSpecificConfig, or an AVCDecoderConfigurationRecord.
    case configuration
    case frame
    /// Nothing more comes, or something that decoders do not need.
    case other
}
