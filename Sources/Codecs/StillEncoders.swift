import CCodecs

/// Encodes single pictures as WebP.
package enum WebPEncoder {
    /// - Parameter quality: 0 to 100.
    package static func encode(_ picture: Picture, quality: Float = 75) throws(CodecError) -> [UInt8] {
        let picture = try picture.asVideo()
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = picture.withPlanes { planes in
            let pointers: [UnsafePointer<UInt8>?] = unsafe [planes.luma, planes.u, planes.v]
            let strides = [
                Int32(picture.lumaStride), Int32(picture.chromaStride), Int32(picture.chromaStride),
            ]
            return unsafe ccodecs_webp_encode(
                pointers, strides, Int32(picture.width), Int32(picture.height), quality, &bytes)
        }
        guard count > 0, let bytes = unsafe bytes else { throw .failed }
        defer { unsafe ccodecs_webp_free(bytes) }
        return unsafe [UInt8](UnsafeBufferPointer(start: bytes, count: Int(count)))
    }
}

/// Encodes single pictures as JPEG.
package enum JPEGEncoder {
    /// - Parameter quality: 1 to 100.
    package static func encode(_ picture: Picture, quality: Int = 80) throws(CodecError) -> [UInt8] {
        let pixels = try picture.bgra()
        guard let handle = unsafe tjInitCompress() else { throw .unavailable }
        defer { _ = unsafe tjDestroy(handle) }
        var bytes: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        let status = unsafe tjCompress2(
            handle, pixels, Int32(picture.width), Int32(picture.width * 4), Int32(picture.height),
            Int32(TJPF_BGRX.rawValue), &bytes, &count, Int32(TJSAMP_420.rawValue),
            Int32(min(max(quality, 1), 100)), 0)
        defer { unsafe tjFree(bytes) }
        guard status == 0, let bytes = unsafe bytes, count > 0 else { throw .failed }
        return unsafe [UInt8](UnsafeBufferPointer(start: bytes, count: Int(count)))
    }
}
