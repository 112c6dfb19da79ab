import Base

/// What somebody wrote, in the form in which all others see it.
///
/// One line: line ends, tabs and other blanks in a row become one space. Control characters, and formatting that nobody
/// sees and that changes how the rest is read, such as U+202E, are left out; joiners, which Persian and families of
/// emoji need, stay, and so do tags behind the black flag. Markup is text like any other.
package struct CommentText: Equatable, Sendable {
    /// In characters as people count them: a family of emoji is one.
    package static let length = 300
    /// In UTF-8: four bytes for each character.
    package static let byteLength = 1_200
    /// Beyond it a text is not even looked at: escapes and what is left out need not fit into `byteLength`.
    private static let longestInput = 4 * byteLength
    /// Accents and joiners in a row, as no script and no emoji has them; more are left out.
    private static let longestTower = 8

    /// The cleaned text.
    package let text: String

    /// - Throws: `.emptyComment` where nothing would be seen, `.longComment`.
    package init(_ written: some StringProtocol) throws(Interaction.Refusal) {
        guard written.utf8.count <= Self.longestInput else { throw .longComment }
        var cleaned = String.UnicodeScalarView()
        var isSpaceDue = false
        var isVisible = false
        var tower = 0
        for scalar in written.unicodeScalars {
            if scalar.properties.isWhitespace {
                isSpaceDue = !cleaned.isEmpty
                continue
            }
            guard Self.isKept(scalar, after: cleaned.last) else { continue }
            if Self.isAttached(scalar) {
                // On a blank it would change what it looks like, and stand alone.
                guard !cleaned.isEmpty, !isSpaceDue, tower < Self.longestTower else { continue }
                tower += 1
            } else {
                if isSpaceDue { cleaned.append(" ") }
                isSpaceDue = false
                tower = 0
                isVisible = isVisible || !Self.blanks.contains(scalar.value)
            }
            cleaned.append(scalar)
        }
        guard isVisible else { throw .emptyComment }
        let text = String(cleaned)
        guard text.utf8.count <= Self.byteLength, text.count <= Self.length else { throw .longComment }
        self.text = text
    }

    private static func isKept(_ scalar: Unicode.Scalar, after last: Unicode.Scalar?) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate: return false
        case .format:
            if scalar == "\u{200C}" || scalar == "\u{200D}" { return true }
            // Behind the black flag, which tags make England's (UTS #51, ED-14a).
            guard tags.contains(scalar.value), let last else { return false }
            return last == "\u{1F3F4}" || tags.contains(last.value)
        default: return true
        }
    }

    private static let tags: ClosedRange<UInt32> = 0xE0020...0xE007F

    /// Whether it belongs to what stands before it: accents, joiners and tags.
    private static func isAttached(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .format, .nonspacingMark, .enclosingMark, .spacingMark: true
        default: false
        }
    }

    /// Letters that show nothing: fillers of Hangul, and Braille without a dot.
    private static let blanks: Set<UInt32> = [0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0]
}
