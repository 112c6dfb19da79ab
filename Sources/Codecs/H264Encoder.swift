import CCodecs

/// Encodes pictures as H.264 in real time: no B-frames, no look-ahead, constant bit rate.
///
/// Key frames are made only on request: the caller decides where segments begin. In `libx264` scene-cut detection is
/// off for the same reason.
@safe package final class H264Encoder {
    /// In pixels; a picture of another size is refused.
    package let width: Int
    /// In pixels; a picture of another size is refused.
    package let height: Int
    /// Parameter sets with start codes (Annex B); they are not repeated in the frames.
    package let header: [UInt8]
    // Closed in `deinit`. Encoded bytes belong to the library until its next call, so they are copied.
    private let handle: OpaquePointer
    /// Pictures passed in so far; the encoder's time stamps.
    private var count: Int64 = 0

    /// Opens an encoder for pictures of one size.
    /// - Parameters:
    ///   - width: in pixels, even, like the height.
    ///   - bitrate: in bits per second, both as a mean and as the maximum over one second.
    /// - Throws: `.size` for odd sizes and those outside 16 to `Picture.maximumSide`; `.unavailable` without
    ///   `libx264`.
    package init(width: Int, height: Int, framesPerSecond: Int, bitrate: Int) throws(CodecError) {
        let sides = 16...Picture.maximumSide
        guard sides.contains(width), sides.contains(height), width.isMultiple(of: 2), height.isMultiple(of: 2)
        else { throw .size(width: width, height: height) }
        guard
            let handle = unsafe ccodecs_h264_open(
                Int32(width), Int32(height), Int32(clamping: max(framesPerSecond, 1)),
                Int32(clamping: max(bitrate, 10_000)))
        else { throw .unavailable }
        unsafe self.handle = unsafe handle
        self.width = width
        self.height = height
        header = unsafe EncoderBytes.header(of: handle)
    }

    deinit {
        unsafe ccodecs_encoder_close(handle)
    }

    /// Encodes the next picture.
    /// - Returns: the frame, with start codes; nil if the encoder dropped the picture.
    package func encode(
        _ picture: Picture, isKeyFrame: Bool
    ) throws(CodecError) -> (bytes: [UInt8], isKeyFrame: Bool)? {
        guard (picture.width, picture.height) == (width, height) else {
            throw .size(width: picture.width, height: picture.height)
        }
        var frame = unsafe ccodecs_encoded()
        let number = count
        count &+= 1
        let status = picture.withPlanes { planes -> Int32 in
            let pointers: [UnsafePointer<UInt8>?] = unsafe [planes.luma, planes.u, planes.v]
            let strides = [planes.lumaStride, planes.chromaStride, planes.chromaStride]
            return unsafe pointers.withUnsafeBufferPointer { pointers in
                unsafe ccodecs_h264_encode(
                    handle, pointers.baseAddress, strides, number, isKeyFrame ? 1 : 0, &frame)
            }
        }
        guard status >= 0 else { throw .failed }
        guard status == 1 else { return nil }
        return unsafe (EncoderBytes.copy(frame), frame.is_key_frame != 0)
    }
}

/// Encodes stereo at 48 kHz as AAC-LC.
@safe package final class AACEncoder {
    /// Samples per channel in one frame.
    package static let frames = Int(CCODECS_AAC_FRAMES)

    /// An AudioSpecificConfig, which decoders need before the first frame.
    package let configuration: [UInt8]
    // Closed in `deinit`. Encoded bytes belong to the library until its next call, so they are copied.
    private let handle: OpaquePointer
    /// Samples per channel passed in so far.
    private var count: Int64 = 0

    /// - Parameter bitrate: in bits per second.
    package init(bitrate: Int) throws(CodecError) {
        guard let handle = unsafe ccodecs_aac_open(Int32(clamping: bitrate)) else { throw .unavailable }
        unsafe self.handle = unsafe handle
        configuration = unsafe EncoderBytes.header(of: handle)
    }

    deinit {
        unsafe ccodecs_encoder_close(handle)
    }

    /// Encodes the next samples.
    ///
    /// The encoder delays its output by one frame: each call returns the samples of the call before, and the first
    /// frame contains the silence before the beginning.
    /// - Parameter samples: 1,024 pairs, interleaved, left first.
    /// - Returns: nil while the encoder has no frame yet.
    package func encode(_ samples: [Float]) throws(CodecError) -> [UInt8]? {
        guard samples.count == Self.frames * OpusDecoder.channels else { throw .failed }
        var frame = unsafe ccodecs_encoded()
        let status = unsafe ccodecs_aac_encode(handle, samples, count, &frame)
        count &+= Int64(Self.frames)
        guard status >= 0 else { throw .failed }
        return status == 1 ? unsafe EncoderBytes.copy(frame) : nil
    }
}

/// Copies bytes that belong to an encoder of libavcodec.
private enum EncoderBytes {
    static func header(of handle: OpaquePointer) -> [UInt8] {
        var count = 0
        guard let bytes = unsafe ccodecs_encoder_header(handle, &count) else { return [] }
        return unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
    }

    static func copy(_ frame: ccodecs_encoded) -> [UInt8] {
        guard let bytes = unsafe frame.bytes else { return [] }
        return unsafe Array(UnsafeBufferPointer(start: bytes, count: frame.count))
    }
}
