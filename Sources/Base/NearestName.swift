/// Finds what somebody meant who misspelt a name.
package enum NearestName {
    /// Longer names are not compared: the work grows with the square.
    private static let longest = 64

    /// The one of `names` that takes the fewest steps to get to; nil if all are too far for a slip.
    ///
    /// Letter case, `-` and `_` do not count; of several that are as near the first in alphabetical order is meant.
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

    private static func bare(_ text: String) -> [Character] {
        text.prefix(longest + 1).lowercased().filter { $0 != "-" && $0 != "_" }
    }

    /// Letters to insert, to remove, to replace, or to swap with their neighbours: optimal string alignment.
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
