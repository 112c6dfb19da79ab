import CCodecs

/// A color as YUV samples (BT.601, limited range).
package struct DrawingColor: Equatable, Sendable {
    /// 16 is black, 235 white.
    package let luma: UInt8
    /// Cb; 128 is gray.
    package let u: UInt8
    /// Cr; 128 is gray.
    package let v: UInt8

    package init(luma: UInt8, u: UInt8, v: UInt8) {
        self.luma = luma
        self.u = u
        self.v = v
    }

    /// - Parameter rgb: 0xRRGGBB.
    /// - Source: ITU-R BT.601, as libyuv rounds it.
    package init(rgb: UInt32) {
        let (red, green, blue) = (Int(rgb >> 16 & 0xFF), Int(rgb >> 8 & 0xFF), Int(rgb & 0xFF))
        luma = UInt8(clamping: (66 * red + 129 * green + 25 * blue + 128) >> 8 + 16)
        u = UInt8(clamping: (-38 * red - 74 * green + 112 * blue + 128) >> 8 + 128)
        v = UInt8(clamping: (112 * red - 94 * green - 18 * blue + 128) >> 8 + 128)
    }

    /// Full luma without chroma.
    package static let white = DrawingColor(luma: 235, u: 128, v: 128)
}

/// Drawing on a picture.
///
/// Anything outside the picture is clipped. Positions and sizes are rounded to even numbers, because one chroma sample
/// covers two by two pixels.
extension Picture {
    /// The part of a rectangle inside the picture, with even edges; nil if there is none.
    private func clipped(x: Int, y: Int, width: Int, height: Int) -> (
        x: Int, y: Int, width: Int, height: Int
    )? {
        let left = max(x, 0) & ~1
        let top = max(y, 0) & ~1
        let right = min(x + width, self.width) & ~1
        let bottom = min(y + height, self.height) & ~1
        guard right > left, bottom > top else { return nil }
        return (left, top, right - left, bottom - top)
    }

    /// Fills a rectangle with one color; in pixels from the upper left corner.
    package mutating func fill(x: Int, y: Int, width: Int, height: Int, with color: DrawingColor) {
        guard let area = clipped(x: x, y: y, width: width, height: height) else { return }
        withMutablePlanes { planes in
            _ = unsafe I420Rect(
                planes.luma, planes.lumaStride, planes.u, planes.chromaStride, planes.v, planes.chromaStride,
                Int32(area.x), Int32(area.y), Int32(area.width), Int32(area.height), Int32(color.luma),
                Int32(color.u), Int32(color.v))
        }
    }

    /// Draws another picture so that it covers a rectangle; its edges are cropped where the proportions differ.
    package mutating func cover(
        x: Int, y: Int, width: Int, height: Int, with picture: Picture
    ) throws(CodecError) {
        guard let area = clipped(x: x, y: y, width: width, height: height) else { return }
        // The largest part of the source with the proportions of the area.
        var (cutWidth, cutHeight) = (picture.width, picture.height)
        if picture.width * area.height > picture.height * area.width {
            cutWidth = max(picture.height * area.width / area.height, 2) & ~1
        } else {
            cutHeight = max(picture.width * area.height / area.width, 2) & ~1
        }
        cutWidth = min(cutWidth, picture.width)
        cutHeight = min(cutHeight, picture.height)
        let left = ((picture.width - cutWidth) / 2) & ~1
        let top = ((picture.height - cutHeight) / 2) & ~1
        try place(
            picture, from: (left, top, cutWidth, cutHeight),
            in: (area.x, area.y, area.width, area.height))
    }

    /// Draws the whole of another picture, centered in a rectangle, with its proportions kept.
    package mutating func fit(
        x: Int, y: Int, width: Int, height: Int, with picture: Picture
    ) throws(CodecError) {
        guard let area = clipped(x: x, y: y, width: width, height: height) else { return }
        var (fitWidth, fitHeight) = (area.width, area.height)
        if picture.width * area.height > picture.height * area.width {
            fitHeight = max(area.width * picture.height / picture.width, 2) & ~1
        } else {
            fitWidth = max(area.height * picture.width / picture.height, 2) & ~1
        }
        try place(
            picture, from: (0, 0, picture.width, picture.height),
            in: (
                (area.x + (area.width - fitWidth) / 2) & ~1, (area.y + (area.height - fitHeight) / 2) & ~1,
                fitWidth, fitHeight
            ))
    }

    /// Scales a part of another picture into a rectangle of this one.
    ///
    /// Both rectangles have to be inside their pictures: the library is given pointers and checks no bounds.
    private mutating func place(
        _ picture: Picture, from: (x: Int, y: Int, width: Int, height: Int),
        in to: (x: Int, y: Int, width: Int, height: Int)
    ) throws(CodecError) {
        let status = picture.withPlanes { source in
            withMutablePlanes { planes in
                let (sourceLuma, sourceChroma) = (Int(source.lumaStride), Int(source.chromaStride))
                let (luma, chroma) = (Int(planes.lumaStride), Int(planes.chromaStride))
                let fromChroma = (from.y / 2) * sourceChroma + from.x / 2
                let toChroma = (to.y / 2) * chroma + to.x / 2
                return unsafe I420Scale(
                    source.luma + from.y * sourceLuma + from.x, source.lumaStride, source.u + fromChroma,
                    source.chromaStride, source.v + fromChroma, source.chromaStride, Int32(from.width),
                    Int32(from.height), planes.luma + to.y * luma + to.x, planes.lumaStride,
                    planes.u + toChroma, planes.chromaStride, planes.v + toChroma, planes.chromaStride,
                    Int32(to.width), Int32(to.height), kFilterBox)
            }
        }
        guard status == 0 else { throw .failed }
    }

    /// Darkens a rectangle, so that text on it is legible: luma to three eighths, chroma to a half.
    package mutating func shade(x: Int, y: Int, width: Int, height: Int) {
        guard let area = clipped(x: x, y: y, width: width, height: height) else { return }
        withMutablePlanes { planes in
            let (luma, chroma) = (Int(planes.lumaStride), Int(planes.chromaStride))
            for row in area.y..<(area.y + area.height) {
                for column in area.x..<(area.x + area.width) {
                    let sample = unsafe Int(planes.luma[row * luma + column])
                    unsafe planes.luma[row * luma + column] = UInt8(clamping: 16 + (sample - 16) * 3 / 8)
                }
            }
            for row in (area.y / 2)..<((area.y + area.height) / 2) {
                for column in (area.x / 2)..<((area.x + area.width) / 2) {
                    let offset = row * chroma + column
                    unsafe planes.u[offset] = unsafe UInt8(clamping: 128 + (Int(planes.u[offset]) - 128) / 2)
                    unsafe planes.v[offset] = unsafe UInt8(clamping: 128 + (Int(planes.v[offset]) - 128) / 2)
                }
            }
        }
    }

    /// Draws white text with its upper left corner at this position.
    package mutating func draw(_ mask: TextMask, x: Int, y: Int) {
        // Only the part of the mask that is inside the picture; the ranges are empty if there is none.
        let rows = max(0, -y)..<max(min(mask.height, height - y), max(0, -y))
        let columns = max(0, -x)..<max(min(mask.width, width - x), max(0, -x))
        withMutablePlanes { planes in
            let (luma, chroma) = (Int(planes.lumaStride), Int(planes.chromaStride))
            for row in rows {
                for column in columns {
                    let coverage = Int(mask.coverage[row * mask.width + column])
                    guard coverage > 0 else { continue }
                    let place = (y + row) * luma + x + column
                    let sample = unsafe Int(planes.luma[place])
                    unsafe planes.luma[place] = UInt8(clamping: sample + (235 - sample) * coverage / 255)
                    // Chroma has half the resolution: the coverage of one pixel of four is accurate enough.
                    guard (y + row).isMultiple(of: 2), (x + column).isMultiple(of: 2) else { continue }
                    let offset = (y + row) / 2 * chroma + (x + column) / 2
                    let (u, v) = unsafe (Int(planes.u[offset]), Int(planes.v[offset]))
                    unsafe planes.u[offset] = UInt8(clamping: u + (128 - u) * coverage / 255)
                    unsafe planes.v[offset] = UInt8(clamping: v + (128 - v) * coverage / 255)
                }
            }
        }
    }
}
