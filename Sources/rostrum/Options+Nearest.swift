extension Option {
    /// What somebody meant who wrote `name`; nil where nothing is like it.
    static func nearest(to name: some StringProtocol, of options: [Option] = all) -> Option? {
        let wanted = Array(name.lowercased().replacing("_", with: "-").utf8.prefix(64))
        let candidates = options.map {
            (option: $0, steps: Self.steps(from: wanted, to: Array($0.name.utf8)))
        }
        guard let best = candidates.min(by: { $0.steps < $1.steps }),
            best.steps <= max(1, min(3, wanted.count / 3))
        else { return nil }
        return best.option
    }

    /// ` …; did you mean http?`, or where to look.
    static func advice(instead name: some StringProtocol, of options: [Option] = all) -> String {
        guard let option = nearest(to: name, of: options) else { return "; rostrum --help lists them all" }
        return "; did you mean \(option.name)?"
    }

    /// How many letters to insert, to leave out, to replace, or to swap with their neighbour.
    private static func steps(from first: [UInt8], to second: [UInt8]) -> Int {
        var before: [Int] = []
        var last = Array(0...second.count)
        for (row, letter) in first.enumerated() {
            var next = [row + 1]
            for (column, other) in second.enumerated() {
                var best = min(last[column + 1], next[column]) + 1
                best = min(best, last[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == second[column - 1], first[row - 1] == other {
                    best = min(best, before[column - 1] + 1)
                }
                next.append(best)
            }
            before = last
            last = next
        }
        return last[second.count]
    }
}
