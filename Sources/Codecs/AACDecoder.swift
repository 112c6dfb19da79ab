import CCodecs

/// Decodes the frames of one AAC stream to stereo at 48 kHz.
/// - Source: ISO/IEC 14496-3 (decoder and resampler are the libraries' own).
@safe package final class AACDecoder {
    // Freed in `deinit`. The library keeps no reference to its input.
    private let handle: OpaquePointer

    /// - Parameter configuration: an AudioSpecificConfig.
    /// - Throws: `.unavailable` if the library does not accept the configuration.
    package init(configuration: [UInt8]) throws(CodecError) {
        guard let handle = unsafe ccodecs_sound_open(configuration, configuration.count) else {
            throw .unavailable
        }
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe ccodecs_sound_close(handle)
    }

    /// Decodes one frame.
    /// - Parameter frame: an access unit without an ADTS header.
    /// - Returns: interleaved samples, left first; empty if the decoder needs the next frame before it can return any.
    package func decode(_ frame: [UInt8]) throws(CodecError) -> [Float] {
        var samples: UnsafePointer<Float>?
        let count = unsafe ccodecs_sound_decode(handle, frame, frame.count, &samples)
        guard count >= 0, let samples = unsafe samples else { throw .failed }
        // Copied: the buffer belongs to the library, and the next call overwrites it.
        return unsafe Array(UnsafeBufferPointer(start: samples, count: Int(count) * OpusDecoder.channels))
    }
}
