import CComposing

/// One line of text as coverage of pixels, to be drawn in any colour.
package struct TextMask: Equatable, Sendable {
    /// In pixels.
    package let width: Int
    /// In pixels.
    package let height: Int
    /// 0 to 255 a pixel, row by row without gaps.
    package let coverage: [UInt8]

    /// Draws text; a line that is too wide ends in an ellipsis.
    ///
    /// - Parameters:
    ///   - size: height of the font in pixels.
    ///   - maximumWidth: in pixels.
    package init(_ text: String, size: Int, maximumWidth: Int) throws(CodecError) {
        // Whoever chose the name chose its length, too.
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
