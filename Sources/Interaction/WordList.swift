/// Words and phrases that a host does not want in comments.
///
/// Whole words count, in any letter case and width: `ass` is not found in `class`. Scripts that put no blanks between
/// words have no whole words: what is written in them is found anywhere.
struct WordList: Sendable {
    /// By their first word.
    private let phrases: [String: [[String]]]
    /// Without blanks and signs.
    private let fragments: [String]

    init(_ entries: [String]) {
        var phrases: [[String]] = []
        var fragments: [String] = []
        for words in entries.map(Self.words) where !words.isEmpty {
            let joined = words.joined()
            if joined.unicodeScalars.contains(where: Self.isOfUnspacedScript) {
                fragments.append(joined)
            } else {
                phrases.append(words)
            }
        }
        self.phrases = Dictionary(grouping: phrases) { $0[0] }
        self.fragments = fragments
    }

    /// Whether one of them is in a text.
    func isIn(_ text: String) -> Bool {
        guard !phrases.isEmpty || !fragments.isEmpty else { return false }
        let words = Self.words(of: text)
        if !fragments.isEmpty {
            let joined = words.joined()
            if fragments.contains(where: { joined.contains($0) }) { return true }
        }
        return words.indices.contains { index in
            phrases[words[index]]?.contains { words[index...].starts(with: $0) } ?? false
        }
    }

    /// What stands between blanks and signs, in lower case and usual width, without what shows nothing.
    static func words(of text: String) -> [String] {
        var shown = String.UnicodeScalarView()
        for scalar in text.lowercased().unicodeScalars {
            // A joiner within a word is not seen, and would make another word of it.
            guard scalar.properties.generalCategory != .format else { continue }
            shown.append(usualWidth(scalar))
        }
        return String(shown).split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }

    /// - Source: Unicode Standard, Halfwidth and Fullwidth Forms (U+FF01 to U+FF5E).
    private static func usualWidth(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        guard (0xFF01...0xFF5E).contains(scalar.value) else { return scalar }
        return Unicode.Scalar(scalar.value - 0xFEE0) ?? scalar
    }

    /// Thai, Lao, Myanmar, Khmer, kana and Han.
    private static func isOfUnspacedScript(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0E00...0x0EFF, 0x1000...0x109F, 0x1780...0x17FF, 0x3040...0x30FF, 0x3400...0x4DBF,
            0x4E00...0x9FFF, 0xF900...0xFAFF, 0x20000...0x323AF:
            true
        default: false
        }
    }
}
