import CCodecs
import Wire

/// Decodes the frames of one video source: VP8 and VP9 by libvpx, H.264, HEVC and AV1 by libavcodec and dav1d.
///
/// Input is hostile, so this belongs in a process that may crash (`Transcoder`). It uses one thread. Pictures beyond
/// `maximumSide` are refused before the library allocates them if a key frame's header gives the size, otherwise as
/// soon as they are decoded.
@safe package final class VideoDecoder {
    /// Largest width and height, in pixels.
    package static let maximumSide = Picture.maximumSide
    /// Largest frame, in bytes.
    package static let maximumFrameSize = 8 << 20

    /// Selects the library: libvpx for VP8 and VP9, libavcodec for the others.
    package let codec: VideoCodec
    // Closed in `deinit`. The planes of a frame belong to the library until its next call, so they are copied.
    private let handle: OpaquePointer

    /// - Parameter reorders: whether frames of H.264 and HEVC may be shown in another order than they are decoded
    ///   (B-frames). The decoder then holds a picture back until all pictures shown before it are decoded, which adds
    ///   delay.
    /// - Throws: `.unavailable` if the installed library cannot decode this codec.
    package init(_ codec: VideoCodec, reorders: Bool = false) throws(CodecError) {
        let format: ccodecs_format =
            switch codec {
            case .vp8: CCODECS_VP8
            case .vp9: CCODECS_VP9
            case .h264: CCODECS_H264
            case .av1: CCODECS_AV1
            case .hevc: CCODECS_HEVC
            }
        guard let handle = unsafe ccodecs_decoder_open(format, Int32(Self.maximumSide), reorders ? 1 : 0)
        else {
            throw .unavailable
        }
        self.codec = codec
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe ccodecs_decoder_close(handle)
    }

    /// Decodes one whole frame.
    ///
    /// - Parameter frame: as reassembled from RTP: H.264 and HEVC with start codes (Annex B), AV1 as units with sizes.
    ///   With spatial layers, all layers of the frame.
    /// - Returns: nil if the frame shows no picture.
    package func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
        try decode(frame, timestamp: 0)?.picture
    }

    /// Decodes one whole frame, with a time stamp that identifies it in the output.
    ///
    /// - Parameter timestamp: any number; returned with the picture of this frame, possibly by a later call.
    /// - Throws: `.tooLarge`, `.unsupported`, or `.failed` for a frame that is empty, too long or not valid.
    package func decode(
        _ frame: [UInt8], timestamp: Int64
    ) throws(CodecError) -> (picture: Picture, timestamp: Int64)? {
        guard !frame.isEmpty, frame.count <= Self.maximumFrameSize else { throw .failed }
        var shown = ccodecs_frame()
        switch unsafe frame.withUnsafeBufferPointer({
            unsafe ccodecs_decoder_decode(handle, $0.baseAddress, $0.count, timestamp, &shown)
        }) {
        case 1: return (try Picture(copying: shown), shown.timestamp)
        case 0: return nil
        case Int32(CCODECS_TOO_LARGE): throw .tooLarge
        case Int32(CCODECS_UNSUPPORTED): throw .unsupported
        default: throw .failed
        }
    }
}

extension Picture {
    /// Copies a decoded frame, converted to 8 bits and 4:2:0 where it is not.
    fileprivate init(copying frame: ccodecs_frame) throws(CodecError) {
        let color = Color(
            matrix: frame.is_bt709 != 0 ? .bt709 : .bt601, isFullRange: frame.is_full_range != 0)
        try self.init(
            uninitialisedWidth: Int(frame.width), height: Int(frame.height), color: color)
        guard let luma = unsafe frame.planes.0, let u = unsafe frame.planes.1, let v = unsafe frame.planes.2
        else { throw .failed }
        let strides = frame.strides
        let (width, height) = (frame.width, frame.height)
        let layout = ccodecs_layout(UInt32(bitPattern: frame.layout))
        let status = withMutablePlanes { to -> Int32 in
            switch layout {
            case CCODECS_I420:
                unsafe I420Copy(
                    luma, strides.0, u, strides.1, v, strides.2, to.luma, to.lumaStride, to.u,
                    to.chromaStride,
                    to.v, to.chromaStride, width, height)
            case CCODECS_I422:
                unsafe I422ToI420(
                    luma, strides.0, u, strides.1, v, strides.2, to.luma, to.lumaStride, to.u,
                    to.chromaStride,
                    to.v, to.chromaStride, width, height)
            case CCODECS_I444:
                unsafe I444ToI420(
                    luma, strides.0, u, strides.1, v, strides.2, to.luma, to.lumaStride, to.u,
                    to.chromaStride,
                    to.v, to.chromaStride, width, height)
            default:
                // Two bytes a sample: libyuv counts strides in samples.
                unsafe Self.withSamples(luma, u, v) { luma, u, v in
                    unsafe I010ToI420(
                        luma, strides.0 / 2, u, strides.1 / 2, v, strides.2 / 2, to.luma, to.lumaStride, to.u,
                        to.chromaStride, to.v, to.chromaStride, width, height)
                }
            }
        }
        guard status == 0 else { throw .failed }
    }

    /// Reinterprets planes whose samples take two bytes.
    private static func withSamples<Result>(
        _ luma: UnsafePointer<UInt8>, _ u: UnsafePointer<UInt8>, _ v: UnsafePointer<UInt8>,
        _ body: (UnsafePointer<UInt16>, UnsafePointer<UInt16>, UnsafePointer<UInt16>) -> Result
    ) -> Result {
        let raw = unsafe (UnsafeRawPointer(luma), UnsafeRawPointer(u), UnsafeRawPointer(v))
        return unsafe body(
            raw.0.assumingMemoryBound(to: UInt16.self), raw.1.assumingMemoryBound(to: UInt16.self),
            raw.2.assumingMemoryBound(to: UInt16.self))
    }
}
