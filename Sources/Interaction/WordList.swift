/// Words and phrases that a host does not want in comments.
///
/// Whole words count, in any letter case: `ass` is not found in `class`.
struct WordList: Sendable {
    /// By their first word.
    private let phrases: [String: [[String]]]

    init(_ entries: [String]) {
        phrases = Dictionary(grouping: entries.map(Self.words).filter { !$0.isEmpty }) { $0[0] }
    }

    /// Whether one of them is in a text.
    func isIn(_ text: String) -> Bool {
        guard !phrases.isEmpty else { return false }
        let words = Self.words(of: text)
        return words.indices.contains { index in
            phrases[words[index]]?.contains { words[index...].starts(with: $0) } ?? false
        }
    }

    /// What stands between blanks and signs, in lower case.
    static func words(of text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }
}
