import CCodecs
import Wire

/// Decodes the frames of one video source: VP8 and VP9 by libvpx, H.264, HEVC and AV1 by libavcodec and
/// dav1d.
///
/// Its input is hostile: it belongs into a process that may die (`Transcoder`). Uses one thread, and refuses pictures
/// beyond `maximumSide` before the library makes room for them; what slips through, because it is not told by a key
/// frame's header, is refused as soon as it is seen.
@safe package final class VideoDecoder {
    /// No picture is wider or higher.
    package static let maximumSide = Picture.maximumSide
    /// No frame has more bytes.
    package static let maximumFrameSize = 8 << 20

    /// Which library decodes: libvpx, or libavcodec for the others.
    package let codec: VideoCodec
    // Closed in `deinit`. The planes of a frame are the library's, until the next call: they are copied before.
    private let handle: OpaquePointer

    /// - Parameter reorders: whether frames of H.264 and HEVC may be shown in another order than they come (B-frames):
    ///   a picture is held back until all that may be shown before it are there.
    /// - Throws: where the library cannot decode this codec here.
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
    /// - Parameter frame: as RTP carries it, put together again; H.264 and HEVC with start codes (Annex B), AV1 as
    ///   units with sizes. With spatial layers, all layers of the frame.
    /// - Returns: nil where the frame shows nothing.
    package func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
        try decode(frame, timestamp: 0)?.picture
    }

    /// The same of frames that are told apart.
    ///
    /// - Parameter timestamp: any number, which comes out with the picture that this frame shows, perhaps later.
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
