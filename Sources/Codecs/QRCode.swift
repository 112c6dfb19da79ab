import CQREncode

/// A text as a QR code: a square of dark and light modules that cameras read.
package struct QRCode: Equatable, Sendable {
    /// Longest text, in bytes of UTF-8: with more, modules become too small for a camera at arm's length.
    package static let textLimit = 1_000
    /// Width of the light margin in modules; scanners do not find a code without it (ISO/IEC 18004 §6.3.8).
    private static let margin = 4

    /// Modules per side, without the margin.
    package let side: Int
    /// Whether each module is dark, row by row.
    private let modules: [Bool]

    /// Encodes a text; nil if it is empty, longer than `textLimit`, or the library is out of memory.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard (1...Self.textLimit).contains(bytes.count) else { return nil }
        // Version 0 selects the smallest code that can hold the text. The lowest error correction gives the largest
        // modules, and codes on a screen are never damaged.
        let made = unsafe bytes.withUnsafeBufferPointer {
            unsafe QRcode_encodeData(CInt($0.count), $0.baseAddress, 0, QR_ECLEVEL_L)
        }
        guard let code = unsafe made else { return nil }
        defer { unsafe QRcode_free(code) }
        let width = Int(unsafe code.pointee.width)
        guard let data = unsafe code.pointee.data, width > 0 else { return nil }
        // The lowest bit is the color; the others are the module's role, which drawing does not need.
        let all = unsafe UnsafeBufferPointer(start: data, count: width * width)
        modules = unsafe all.map { $0 & 1 == 1 }
        side = width
    }

    /// Whether a module is dark.
    /// - Parameters:
    ///   - column: from the left, below `side`.
    ///   - row: from the top, below `side`.
    package func isDark(column: Int, row: Int) -> Bool { modules[row * side + column] }

    /// An SVG image, dark on white regardless of the page's colors, in units of one module.
    package var svg: String {
        let size = side + 2 * Self.margin
        let dark = (0..<side).flatMap { row in runs(inRow: row) }
        return #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(size) \#(size)" "#
            + #"shape-rendering="crispEdges">"#
            + #"<path fill="white" d="M0 0h\#(size)v\#(size)h-\#(size)z"/><path d="\#(dark.joined())"/></svg>"#
    }

    /// The runs of dark modules in a row, each as a rectangle of an SVG path.
    private func runs(inRow row: Int) -> [String] {
        var found: [String] = []
        var column = 0
        while column < side {
            let start = column
            while column < side, isDark(column: column, row: row) { column += 1 }
            if column > start {
                let length = column - start
                found.append("M\(start + Self.margin) \(row + Self.margin)h\(length)v1h-\(length)z")
            }
            column += 1
        }
        return found
    }
}
