/// Why a codec failed.
package enum CodecError: Error, Equatable, Sendable {
    /// The library could not be set up.
    case unavailable
    /// The input is not valid, or the library reported an error.
    case failed
    /// A picture is outside the sizes that the codec accepts, in pixels.
    case size(width: Int, height: Int)
    /// The decoded picture, or the size in its header, exceeds `VideoDecoder.maximumSide`.
    case tooLarge
    /// The chroma sampling or bit depth is not one that live video uses.
    case unsupported
}
