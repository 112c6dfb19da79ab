import CComposing

/// Encodes pictures as VP8 in real time: constant bit rate, no look-ahead, nothing left out.
///
/// Key frames come only when asked for, because whoever drives it has a rule for them.
@safe package final class VP8Encoder {
    /// What is encoded, and at what cost; the size stays for the encoder's life.
    package struct Settings: Equatable, Sendable {
        /// In pixels; a picture of another size is refused.
        package var width: Int
        /// In pixels; a picture of another size is refused.
        package var height: Int
        /// What the rate control spreads the bits over; time stamps may say otherwise.
        package var framesPerSecond: Int
        /// In bits a second.
        package var bitrate: Int
        /// That libvpx may use for one picture.
        package var threads = 1
        /// 0 to 16: the higher, the less it costs.
        package var speed = 8
        /// Percent of the bit rate for the lower of two temporal layers, which is every other picture; nil for one
        /// layer.
        package var lowerLayerShare: Int?
        /// Percent of a picture's share of the bit rate that a key frame may take.
        package var keyFrameShare = 900
        /// Whether the bit rate is kept to at any price: pictures may be coarse, and left out.
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
        /// As RTP's payload, before it is cut into packets.
        package let bytes: [UInt8]
        /// Of the first frame always, else where one was asked for.
        package let isKeyFrame: Bool
    }

    /// As they hold now: `adjust` changes them.
    package let settings: Settings
    // Closed in `deinit`. A frame's bytes are the library's, until the next call: they are copied before.
    private let handle: OpaquePointer

    /// - Throws: where libvpx does not take the settings.
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
    ///   - isInHigherLayer: whether no other picture may need it; only where there are two layers.
    /// - Returns: nil if the encoder left the picture out.
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
