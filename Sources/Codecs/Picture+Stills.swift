import CCodecs

extension Picture {
    /// In pixels; files that are wider or higher are refused.
    package static let maximumStillSide = 2_048

    /// Reads a JPEG, WebP or PNG file.
    ///
    /// A hostile file may crash the libraries, so this runs in the transcoder only.
    package init(stillFile bytes: [UInt8]) throws(CodecError) {
        var (width, height): (Int32, Int32) = (0, 0)
        let pixels = unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe buffer.baseAddress.flatMap {
                unsafe ccodecs_still_decode($0, buffer.count, Int32(Self.maximumStillSide), &width, &height)
            }
        }
        guard let pixels = unsafe pixels else { throw .failed }
        defer { unsafe ccodecs_still_free(pixels) }
        let count = Int(width) * Int(height) * 4
        unsafe try self.init(
            bgra: Array(UnsafeBufferPointer(start: pixels, count: count)), width: Int(width),
            height: Int(height))
    }

    /// A blurred copy: shrunk to a few samples and enlarged in two steps, so that no edges remain.
    package func blurred() throws(CodecError) -> Picture {
        let small = try scaled(width: max(width / 32, 4), height: max(height / 32, 4))
        let middle = try small.scaled(width: max(width / 6, 4), height: max(height / 6, 4))
        return try middle.scaled(width: width, height: height)
    }
}
