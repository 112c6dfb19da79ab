/// The words and phrases that a host does not want in comments.
///
/// Only whole words match, in any letter case and width: `ass` does not match `class`. Scripts without blanks between
/// words have no whole words, so words in them match anywhere.
struct WordList: Sendable {
    /// Phrases by their first word.
    private let phrases: [String: [[String]]]
    /// Words of scripts without blanks, joined, without blanks and signs.
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

    /// Whether a text contains one of the words or phrases.
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

    /// The words of a text: what is between blanks and signs, in lower case and usual width, without invisible
    /// characters.
    static func words(of text: String) -> [String] {
        var shown = String.UnicodeScalarView()
        for scalar in text.lowercased().unicodeScalars {
            // An invisible joiner, filler or selector inside a word would make it a different word.
            guard scalar.properties.generalCategory != .format,
                !scalar.properties.isDefaultIgnorableCodePoint
            else { continue }
            shown.append(usualWidth(scalar))
        }
        return String(shown).split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }

    /// Replaces a full-width character, or half-width kana, by the usual one.
    /// - Source: Unicode Standard, Halfwidth and Fullwidth Forms (U+FF01 to U+FF5E, U+FF66 to U+FF9F).
    private static func usualWidth(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0xFF01...0xFF5E: Unicode.Scalar(scalar.value - 0xFEE0) ?? scalar
        case 0xFF66...0xFF9F: kana[Int(scalar.value - 0xFF66)]
        default: scalar
        }
    }

    /// The usual forms of half-width kana, and of the two marks that voice the letter before them.
    private static let kana = Array(
        "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u{3099}\u{309A}".unicodeScalars)

    /// Whether it is Thai, Lao, Myanmar, Khmer, kana or Han.
    private static func isOfUnspacedScript(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0E00...0x0EFF, 0x1000...0x109F, 0x1780...0x17FF, 0x3040...0x30FF, 0x3400...0x4DBF,
            0x4E00...0x9FFF, 0xF900...0xFAFF, 0x20000...0x323AF:
            true
        default: false
        }
    }
}
