import CComposing

/// One line of text as a coverage mask, which can be drawn in any color.
package struct TextMask: Equatable, Sendable {
    /// In pixels.
    package let width: Int
    /// In pixels.
    package let height: Int
    /// 0 to 255 per pixel, row by row without gaps.
    package let coverage: [UInt8]

    /// Renders text; a line that is too wide ends in an ellipsis.
    ///
    /// - Parameters:
    ///   - size: font height in pixels, 4 to 256.
    ///   - maximumWidth: in pixels, 8 to 4,096.
    /// - Throws: `.failed` for an empty text, or values outside these ranges.
    package init(_ text: String, size: Int, maximumWidth: Int) throws(CodecError) {
        // The text comes from participants: its length is limited before layout, and a NUL would end the C string.
        let text = String(text.prefix(100).filter { $0 != "\0" })
        guard !text.isEmpty, (4...256).contains(size), (8...4_096).contains(maximumWidth) else {
            throw .failed
        }
        var (width, height): (Int32, Int32) = (0, 0)
        guard
            let drawn = unsafe ccomposing_text_draw(text, Int32(size), Int32(maximumWidth), &width, &height)
        else { throw .failed }
        defer { unsafe ccomposing_text_free(drawn) }
        self.width = Int(width)
        self.height = Int(height)
        coverage = unsafe Array(UnsafeBufferPointer(start: drawn, count: self.width * self.height))
    }
}
