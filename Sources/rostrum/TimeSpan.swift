/// Times as operators write them: `30d`, `12h`, `90m`, `45s`, or `45` for seconds.
enum TimeSpan {
    /// From the largest to the smallest, so that `text` finds the largest first.
    private static let units: [(letter: Character, seconds: Int)] = [
        ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1),
    ]

    /// Parses a time.
    /// - Parameter longest: in seconds; a longer time is treated as a typing error.
    /// - Returns: seconds, at least 1; nil for any other text.
    static func seconds(_ text: String, longest: Int) -> Int? {
        let unit = units.first { $0.letter == text.last }
        let digits = unit == nil ? Substring(text) : text.dropLast()
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(digits), count >= 1,
            case let (product, overflow) = count.multipliedReportingOverflow(by: unit?.seconds ?? 1),
            !overflow, product <= longest
        else { return nil }
        return product
    }

    /// A time in the largest unit that expresses it exactly.
    static func text(_ seconds: Int) -> String {
        let unit = units.first { seconds % $0.seconds == 0 } ?? ("s", 1)
        return "\(seconds / unit.seconds)\(unit.letter)"
    }
}
