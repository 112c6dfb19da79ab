/// Why a codec did not do what it was asked for.
package enum CodecError: Error, Equatable, Sendable {
    /// The library could not be set up.
    case unavailable
    /// The bytes make no sense, or the library refused.
    case failed
    /// A picture is larger than anybody needs, or has no size at all.
    case size(width: Int, height: Int)
    /// A picture, or the size that its header names, goes beyond `VideoDecoder.maximumSide`.
    case tooLarge
    /// A sampling or depth that live video does not use.
    case unsupported
}
