import Base

/// The text of a comment in the form in which others see it.
///
/// It is one line: line breaks, tabs and runs of blanks become one space. Control characters are removed, and so are
/// invisible formatting characters that change how the rest is read, such as U+202E. Joiners stay, because Persian
/// and emoji of families need them, and so do tags behind the black flag. Markup is ordinary text.
package struct CommentText: Equatable, Sendable {
    /// Most characters as people count them: an emoji of a family is one.
    package static let length = 300
    /// Most bytes in UTF-8: four for each character.
    package static let byteLength = 1_200
    /// Bytes beyond which a text is refused unread.
    ///
    /// Characters that are removed do not count towards `byteLength`.
    private static let longestInput = 4 * byteLength
    /// Most accents and joiners on one character, more than any script or emoji has; further ones are removed.
    private static let longestTower = 8

    /// The cleaned text.
    package let text: String

    /// Cleans a text.
    /// - Throws: `.emptyComment` if nothing of it would be visible, `.longComment`.
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
                // An accent after a blank would attach to that and stand alone.
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

    /// Whether a character stays, apart from the limit on accents.
    private static func isKept(_ scalar: Unicode.Scalar, after last: Unicode.Scalar?) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate: return false
        case .format:
            if scalar == "\u{200C}" || scalar == "\u{200D}" { return true }
            // Tags belong behind the black flag, which they turn into the flag of England, for example (UTS #51,
            // ED-14a).
            guard tags.contains(scalar.value), let last else { return false }
            return last == "\u{1F3F4}" || tags.contains(last.value)
        default: return true
        }
    }

    /// Tag characters.
    private static let tags: ClosedRange<UInt32> = 0xE0020...0xE007F

    /// Whether it attaches to the character before it: accents, joiners and tags.
    private static func isAttached(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .format, .nonspacingMark, .enclosingMark, .spacingMark: true
        default: false
        }
    }

    /// Letters that are invisible: Hangul fillers, and Braille without dots.
    private static let blanks: Set<UInt32> = [0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0]
}
