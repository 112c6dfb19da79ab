/// Finds the name that was probably meant by a misspelled one.
package enum NearestName {
    /// Longer names are not compared, because the work grows with the square of the length.
    private static let longest = 64

    /// The one of `names` that needs the fewest changes; nil if all need too many for a typing error.
    ///
    /// Letter case, `-` and `_` are ignored. Among equally near names, the first in alphabetical order wins.
    package static func of(_ text: String, among names: some Sequence<String>) -> String? {
        let wanted = bare(text)
        guard !wanted.isEmpty, wanted.count <= longest else { return nil }
        let limit = max(wanted.count / 3, 1)
        var best: (name: String, steps: Int)?
        for name in names.sorted() {
            let other = bare(name)
            guard other.count <= longest, abs(other.count - wanted.count) <= limit else { continue }
            let steps = distance(wanted, other)
            if steps <= limit, steps < best?.steps ?? .max { best = (name, steps) }
        }
        return best?.name
    }

    /// The characters that are compared, one more than the longest at most.
    private static func bare(_ text: String) -> [Character] {
        // What is ignored goes first: a text that is cut off before would be compared by its beginning alone.
        let letters = text.lazy.filter { $0 != "-" && $0 != "_" }.prefix(longest + 1)
        return Array(String(letters).lowercased())
    }

    /// Number of insertions, deletions, replacements and swaps of neighboring letters (optimal string alignment).
    private static func distance(_ one: [Character], _ other: [Character]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...other.count)
        for (row, letter) in one.enumerated() {
            var line = [row + 1]
            for (column, candidate) in other.enumerated() {
                var steps = min(
                    line[column] + 1, last[column + 1] + 1, last[column] + (letter == candidate ? 0 : 1))
                if row > 0, column > 0, letter == other[column - 1], one[row - 1] == candidate {
                    steps = min(steps, beforeLast[column - 1] + 1)
                }
                line.append(steps)
            }
            (beforeLast, last) = (last, line)
        }
        return last.last ?? 0
    }
}
