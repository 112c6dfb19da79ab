import CCodecs

/// Decodes the frames of one AAC stream to stereo at 48 kHz.
/// - Source: ISO/IEC 14496-3 (decoder and resampler are the libraries' own).
@safe package final class AACDecoder {
    // Freed in `deinit`; the library keeps nothing of what it is given.
    private let handle: OpaquePointer

    /// - Parameter configuration: an AudioSpecificConfig.
    /// - Throws: `.unavailable` where that makes no sense to the library.
    package init(configuration: [UInt8]) throws(CodecError) {
        guard let handle = unsafe ccodecs_sound_open(configuration, configuration.count) else {
            throw .unavailable
        }
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe ccodecs_sound_close(handle)
    }

    /// The sound of a frame, left and right in turn; empty where the next frame completes it.
    package func decode(_ frame: [UInt8]) throws(CodecError) -> [Float] {
        var samples: UnsafePointer<Float>?
        let count = unsafe ccodecs_sound_decode(handle, frame, frame.count, &samples)
        guard count >= 0, let samples = unsafe samples else { throw .failed }
        // The library's own buffer, which the next call writes to.
        return unsafe Array(UnsafeBufferPointer(start: samples, count: Int(count) * OpusDecoder.channels))
    }
}
