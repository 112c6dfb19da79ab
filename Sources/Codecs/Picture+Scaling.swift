import CCodecs

extension Picture {
    /// Scales to another size; proportions change if they differ.
    package func scaled(width: Int, height: Int) throws(CodecError) -> Picture {
        guard (width, height) != (self.width, self.height) else { return self }
        var result = try Picture(uninitialisedWidth: width, height: height, color: color)
        let status = withPlanes { from in
            result.withMutablePlanes { to in
                unsafe I420Scale(
                    from.luma, from.lumaStride, from.u, from.chromaStride, from.v, from.chromaStride,
                    Int32(self.width), Int32(self.height),
                    to.luma, to.lumaStride, to.u, to.chromaStride, to.v, to.chromaStride,
                    Int32(width), Int32(height), kFilterBox)
            }
        }
        guard status == 0 else { throw .failed }
        return result
    }

    /// Scales to a width with the proportions kept; never enlarges the picture.
    package func scaled(toWidth width: Int) throws(CodecError) -> Picture {
        guard width < self.width else { return self }
        let height = max((self.height * width + self.width / 2) / self.width, 1)
        return try scaled(width: width, height: height)
    }

    /// Rotates the picture clockwise, as its sender requested, so that it is upright.
    package func turned(_ turn: Turn) throws(CodecError) -> Picture {
        guard turn != .none else { return self }
        let isOnItsSide = turn == .left || turn == .right
        var result = try Picture(
            uninitialisedWidth: isOnItsSide ? height : width, height: isOnItsSide ? width : height,
            color: color)
        let mode: RotationMode =
            switch turn {
            case .none: kRotate0
            case .right: kRotate90
            case .half: kRotate180
            case .left: kRotate270
            }
        let status = withPlanes { from in
            result.withMutablePlanes { to in
                unsafe I420Rotate(
                    from.luma, from.lumaStride, from.u, from.chromaStride, from.v, from.chromaStride,
                    to.luma, to.lumaStride, to.u, to.chromaStride, to.v, to.chromaStride,
                    Int32(width), Int32(height), mode)
            }
        }
        guard status == 0 else { throw .failed }
        return result
    }

    /// Four bytes per pixel: blue, green, red and 255, row by row without gaps.
    package func bgra() throws(CodecError) -> [UInt8] {
        var status: Int32 = -1
        let count = width * height * 4
        let result = withPlanes { from in
            unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialised in
                initialised = count
                status = unsafe ccodecs_i420_to_bgra(
                    from.luma, from.lumaStride, from.u, from.v, from.chromaStride, buffer.baseAddress,
                    Int32(width), Int32(height), color.matrix == .bt709 ? 1 : 0, color.isFullRange ? 1 : 0)
            }
        }
        guard status == 0 else { throw .failed }
        return result
    }

    /// Creates a picture from four bytes per pixel: blue, green, red, and one that is ignored.
    /// - Throws: `.size` for a size that `Picture` does not support, `.failed` if bytes are missing.
    package init(bgra: [UInt8], width: Int, height: Int) throws(CodecError) {
        try self.init(uninitialisedWidth: width, height: height, color: .video)
        guard bgra.count >= width * height * 4 else { throw .failed }
        let status = withMutablePlanes { to in
            unsafe ARGBToI420(
                bgra, Int32(width * 4), to.luma, to.lumaStride, to.u, to.chromaStride, to.v, to.chromaStride,
                Int32(width),
                Int32(height))
        }
        guard status == 0 else { throw .failed }
    }

    /// Converts the samples to `Color.video`, which encoders and viewers assume.
    package func asVideo() throws(CodecError) -> Picture {
        guard color != .video else { return self }
        return try Picture(bgra: bgra(), width: width, height: height)
    }
}
