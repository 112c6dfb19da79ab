import CQREncode

/// A text as a square of dark and light modules, which a phone's camera reads.
/// - Source: ISO/IEC 18004; libqrencode `qrencode.h`.
package struct QRCode: Equatable, Sendable {
    /// Bytes of UTF-8 that a text may have: with more, the modules get too small for a camera at arm's length.
    package static let textLimit = 1_000
    /// Modules of light around it, without which readers do not find it (ISO/IEC 18004 §6.3.8).
    private static let margin = 4

    /// Modules of a side, without the margin.
    package let side: Int
    /// Row by row.
    private let modules: [Bool]

    /// Nil for a text that is empty or longer than `textLimit`, and where the library has no memory for it.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard (1...Self.textLimit).contains(bytes.count) else { return nil }
        // Its smallest version that has room, with the largest modules: on a screen nothing is damaged.
        let made = unsafe bytes.withUnsafeBufferPointer {
            unsafe QRcode_encodeData(CInt($0.count), $0.baseAddress, 0, QR_ECLEVEL_L)
        }
        guard let code = unsafe made else { return nil }
        defer { unsafe QRcode_free(code) }
        let width = Int(unsafe code.pointee.width)
        guard let data = unsafe code.pointee.data, width > 0 else { return nil }
        // The lowest bit of a byte is the module's colour, all others tell what it is for.
        let all = unsafe UnsafeBufferPointer(start: data, count: width * width)
        modules = unsafe all.map { $0 & 1 == 1 }
        side = width
    }

    /// Whether a module is dark.
    /// - Parameters:
    ///   - column: from the left, below `side`.
    ///   - row: from the top, below `side`.
    package func isDark(column: Int, row: Int) -> Bool { modules[row * side + column] }

    /// A picture of it, dark on white whatever is around it, in units of one module.
    package var svg: String {
        let size = side + 2 * Self.margin
        let dark = (0..<side).flatMap { row in runs(inRow: row) }
        return #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(size) \#(size)" "#
            + #"shape-rendering="crispEdges">"#
            + #"<path fill="white" d="M0 0h\#(size)v\#(size)h-\#(size)z"/><path d="\#(dark.joined())"/></svg>"#
    }

    /// The dark modules of a row that follow each other, each time as a rectangle of an SVG path.
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
