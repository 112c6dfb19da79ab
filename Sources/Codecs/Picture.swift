import CCodecs

/// A picture in YUV 4:2:0: three planes in one block of memory that it owns.
///
/// A value, so that it can be sent across threads. Copies share the block until one of them is modified.
package struct Picture: Sendable {
    /// How samples map to colors.
    package struct Color: Equatable, Sendable {
        /// The matrix between RGB and YUV: BT.601 for what WebRTC sends, BT.709 where a stream signals it.
        package enum Matrix: Equatable, Sendable {
            case bt601, bt709
        }

        /// Signaled by the stream, or assumed.
        package var matrix: Matrix
        /// Whether samples use all of 0 to 255; otherwise luma is 16 to 235, as is usual for video.
        package var isFullRange: Bool

        package init(matrix: Matrix, isFullRange: Bool) {
            self.matrix = matrix
            self.isFullRange = isFullRange
        }

        /// What WebRTC encoders and WebP use unless a stream signals otherwise.
        package static let video = Color(matrix: .bt601, isFullRange: false)
    }

    /// Clockwise rotation in degrees that makes a picture upright (3GPP TS 26.114 §7.4.5).
    package enum Turn: Int, Sendable {
        case none = 0
        case right = 90
        case half = 180
        case left = 270
    }

    /// The planes of a picture, for reading; valid only while a `with…Planes` call runs.
    @safe package struct Planes {
        /// One byte per pixel, `lumaStride` bytes per row.
        package let luma: UnsafePointer<UInt8>
        /// One byte for two by two pixels, `chromaStride` bytes per row.
        package let u: UnsafePointer<UInt8>
        /// As U.
        package let v: UnsafePointer<UInt8>
        /// In bytes; may be more than the width.
        package let lumaStride: Int32
        /// In bytes, of U and of V.
        package let chromaStride: Int32
    }

    /// The planes of a picture, for drawing; valid only while `withMutablePlanes` runs.
    @safe package struct MutablePlanes {
        /// One byte per pixel, `lumaStride` bytes per row.
        package let luma: UnsafeMutablePointer<UInt8>
        /// One byte for two by two pixels, `chromaStride` bytes per row.
        package let u: UnsafeMutablePointer<UInt8>
        /// As U.
        package let v: UnsafeMutablePointer<UInt8>
        /// In bytes; may be more than the width.
        package let lumaStride: Int32
        /// In bytes, of U and of V.
        package let chromaStride: Int32
    }

    /// In pixels, 1 to `maximumSide`.
    package let width: Int
    /// In pixels, 1 to `maximumSide`.
    package let height: Int
    /// How the samples are to be converted to RGB.
    package var color: Color
    /// Bytes from one row of luma to the next.
    package let lumaStride: Int
    /// Bytes from one row of U or of V to the next.
    package let chromaStride: Int
    private var storage: [UInt8]

    /// The largest width and height, in pixels.
    package static let maximumSide = 4_096

    /// Creates a picture of one color, black by default.
    package init(
        width: Int, height: Int, luma: UInt8 = 16, u: UInt8 = 128, v: UInt8 = 128, color: Color = .video
    ) throws(CodecError) {
        try self.init(uninitialisedWidth: width, height: height, color: color)
        let counts = (lumaStride * height, chromaStride * chromaHeight)
        withMutablePlanes { planes in
            unsafe planes.luma.update(repeating: luma, count: counts.0)
            unsafe planes.u.update(repeating: u, count: counts.1)
            unsafe planes.v.update(repeating: v, count: counts.1)
        }
    }

    /// Creates a picture with undefined samples: the caller has to write all of them.
    init(uninitialisedWidth width: Int, height: Int, color: Color) throws(CodecError) {
        guard (1...Self.maximumSide).contains(width), (1...Self.maximumSide).contains(height) else {
            throw .size(width: width, height: height)
        }
        self.width = width
        self.height = height
        self.color = color
        // Aligned to 32 bytes for vector instructions.
        lumaStride = (width + 31) & ~31
        chromaStride = lumaStride / 2
        let count = lumaStride * height + 2 * chromaStride * ((height + 1) / 2)
        storage = unsafe [UInt8](unsafeUninitializedCapacity: count) { $1 = count }
    }

    /// Rows of the U and V planes.
    package var chromaHeight: Int { (height + 1) / 2 }

    /// Where the chroma planes begin in `storage`, in bytes.
    private var uOffset: Int { lumaStride * height }
    private var vOffset: Int { uOffset + chromaStride * chromaHeight }

    /// The luma sample of a pixel; nil outside the picture.
    package func luma(x: Int, y: Int) -> UInt8? {
        guard (0..<width).contains(x), (0..<height).contains(y) else { return nil }
        return storage[y * lumaStride + x]
    }

    /// All samples of a pixel; nil outside the picture.
    package func sample(x: Int, y: Int) -> (luma: UInt8, u: UInt8, v: UInt8)? {
        guard let luma = luma(x: x, y: y) else { return nil }
        let offset = (y / 2) * chromaStride + x / 2
        return (luma, storage[uOffset + offset], storage[vOffset + offset])
    }

    /// Passes the planes to a library for reading; the pointers must not leave `body`.
    package func withPlanes<Result>(_ body: (Planes) -> Result) -> Result {
        unsafe storage.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { preconditionFailure("a picture without samples") }
            return unsafe body(
                Planes(
                    luma: base, u: base + uOffset, v: base + vOffset, lumaStride: Int32(lumaStride),
                    chromaStride: Int32(chromaStride)))
        }
    }

    /// Passes the planes to a library for drawing; the pointers must not leave `body`.
    package mutating func withMutablePlanes<Result>(_ body: (MutablePlanes) -> Result) -> Result {
        let (uOffset, vOffset) = (uOffset, vOffset)
        let (lumaStride, chromaStride) = (Int32(lumaStride), Int32(chromaStride))
        return unsafe storage.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { preconditionFailure("a picture without samples") }
            return unsafe body(
                MutablePlanes(
                    luma: base, u: base + uOffset, v: base + vOffset, lumaStride: lumaStride,
                    chromaStride: chromaStride))
        }
    }
}
