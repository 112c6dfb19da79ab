import CComposing

/// Encodes pictures as VP8 in real time: constant bit rate, no look-ahead; it drops pictures only if `isStrict` is
/// set.
///
/// Key frames are made only on request: each caller has its own rule for them.
@safe package final class VP8Encoder {
    /// Size, bit rate and cost; they do not change during the encoder's life.
    package struct Settings: Equatable, Sendable {
        /// In pixels; a picture of another size is refused.
        package var width: Int
        /// In pixels; a picture of another size is refused.
        package var height: Int
        /// The rate for which rate control budgets bits; actual time stamps may differ.
        package var framesPerSecond: Int
        /// In bits per second.
        package var bitrate: Int
        /// Threads that libvpx may use for one picture.
        package var threads = 1
        /// 0 to 16; higher values use less processor time and give lower quality.
        package var speed = 8
        /// Percent of the bit rate for the lower of two temporal layers, which contains every other picture; nil for
        /// one layer.
        package var lowerLayerShare: Int?
        /// Largest key frame, in percent of one picture's share of the bit rate.
        package var keyFrameShare = 900
        /// Whether the bit rate has precedence over quality: pictures may become coarse, or be dropped.
        package var isStrict = false

        package init(width: Int, height: Int, framesPerSecond: Int, bitrate: Int) {
            self.width = width
            self.height = height
            self.framesPerSecond = framesPerSecond
            self.bitrate = bitrate
        }
    }

    /// One encoded picture.
    package struct Frame: Equatable, Sendable {
        /// The frame as the payload of RTP, before packetization.
        package let bytes: [UInt8]
        /// Always true for the first frame, afterwards if one was requested.
        package let isKeyFrame: Bool
    }

    /// As passed to the initializer.
    package let settings: Settings
    // Closed in `deinit`. Encoded bytes belong to the library until its next call, so they are copied.
    private let handle: OpaquePointer

    /// - Throws: `.size` for sides outside 16 to `Picture.maximumSide`; `.unavailable` if libvpx refuses the settings.
    package init(_ settings: Settings) throws(CodecError) {
        let sides = 16...Picture.maximumSide
        guard sides.contains(settings.width), sides.contains(settings.height) else {
            throw .size(width: settings.width, height: settings.height)
        }
        var values = ccomposing_vp8_settings(
            width: Int32(settings.width), height: Int32(settings.height),
            frames_per_second: Int32(clamping: settings.framesPerSecond),
            bitrate: Int32(clamping: max(settings.bitrate / 1_000, 10)), threads: Int32(settings.threads),
            speed: Int32(settings.speed),
            lower_layer_percent: Int32(clamping: min(max(settings.lowerLayerShare ?? 0, 0), 100)),
            key_frame_percent: Int32(clamping: settings.keyFrameShare), is_strict: settings.isStrict ? 1 : 0)
        guard let handle = unsafe ccomposing_vp8_open(&values) else { throw .unavailable }
        self.settings = settings
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe ccomposing_vp8_close(handle)
    }

    /// Encodes the next picture.
    ///
    /// - Parameters:
    ///   - timestamp: in ticks of 90 kHz, later than the one before.
    ///   - isInHigherLayer: whether no other picture may refer to this one; only with two layers. Ignored for key
    ///     frames.
    /// - Returns: nil if the encoder dropped the picture.
    package func encode(
        _ picture: Picture, timestamp: Int64, isKeyFrame: Bool, isInHigherLayer: Bool = false
    ) throws(CodecError) -> Frame? {
        guard (picture.width, picture.height) == (settings.width, settings.height) else {
            throw .size(width: picture.width, height: picture.height)
        }
        var frame = unsafe ccomposing_vp8_frame()
        let duration = Int32(90_000 / max(settings.framesPerSecond, 1))
        let status = picture.withPlanes { planes -> Int32 in
            let pointers: [UnsafePointer<UInt8>?] = unsafe [planes.luma, planes.u, planes.v]
            let strides = [planes.lumaStride, planes.chromaStride, planes.chromaStride]
            return unsafe pointers.withUnsafeBufferPointer { pointers in
                unsafe ccomposing_vp8_encode(
                    handle, pointers.baseAddress, strides, timestamp, duration, isKeyFrame ? 1 : 0,
                    isInHigherLayer && !isKeyFrame ? 1 : 0, &frame)
            }
        }
        guard status >= 0 else { throw .failed }
        guard status == 1, let bytes = unsafe frame.bytes else { return nil }
        return unsafe Frame(
            bytes: Array(UnsafeBufferPointer(start: bytes, count: frame.count)),
            isKeyFrame: frame.is_key_frame != 0)
    }
}
