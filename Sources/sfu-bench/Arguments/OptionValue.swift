/// Parses the values of options; every function throws a `UsageError` that names the option.
enum OptionValue {
    /// A text that must not be empty, as the variables of a script may be.
    static func text(_ text: String, _ option: String) throws(UsageError) -> String {
        guard !text.isEmpty else { throw UsageError("\(option) is empty; give a value, or leave it out") }
        return text
    }

    /// Parses a whole number within bounds.
    static func count(_ text: String, _ option: String, _ bounds: ClosedRange<Int>) throws(UsageError) -> Int
    {
        guard let value = Int(text) else {
            throw UsageError("\(option) must be a whole number, not \"\(text)\"")
        }
        guard bounds.contains(value) else {
            throw UsageError(
                "\(option) must be from \(bounds.lowerBound) to \(bounds.upperBound), not \"\(text)\"")
        }
        return value
    }

    /// Parses a decimal number within bounds.
    static func number(
        _ text: String, _ option: String, _ bounds: ClosedRange<Double>
    ) throws(UsageError) -> Double {
        guard let value = Double(text), value.isFinite else {
            throw UsageError("\(option) must be a number, not \"\(text)\"")
        }
        guard bounds.contains(value) else {
            throw UsageError(
                "\(option) must be from \(short(bounds.lowerBound)) to \(short(bounds.upperBound)), not \"\(text)\""
            )
        }
        return value
    }

    /// Parses a time into seconds: `10`, `1.5`, `500ms`, `10s`, `5m`, `1h`.
    static func seconds(
        _ text: String, _ option: String, _ bounds: ClosedRange<Double>
    ) throws(UsageError) -> Double {
        // `ms` before `s`, with which it also ends.
        let units: [(String, Double)] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)]
        let unit = units.first { text.hasSuffix($0.0) }
        let digits = text.dropLast(unit?.0.count ?? 0)
        guard let value = Double(digits), value.isFinite else {
            throw UsageError("\(option) must be a duration such as 10s, 500ms or 5m, not \"\(text)\"")
        }
        // By milliseconds: a factor of a thousandth would not be exact in floating point.
        let seconds = value * (unit?.1 ?? 1_000) / 1_000
        guard bounds.contains(seconds) else {
            throw UsageError(
                "\(option) must be from \(short(bounds.lowerBound)) s to \(short(bounds.upperBound)) s, not \"\(text)\""
            )
        }
        return seconds
    }

    /// Parses bits a second: `1500000`, `1500k`, `1.5M`; 0 stands for none and is always allowed.
    static func bitrate(
        _ text: String, _ option: String, _ bounds: ClosedRange<Int>
    ) throws(UsageError) -> Int {
        let factor: Double =
            switch text.last {
            case "k", "K": 1_000
            case "m", "M": 1_000_000
            default: 1
            }
        guard let value = Double(factor == 1 ? text[...] : text.dropLast()), value.isFinite else {
            throw UsageError("\(option) must be a bit rate such as 1500k or 1.5M, not \"\(text)\"")
        }
        let bits = value * factor
        guard bits == 0 || bits >= Double(bounds.lowerBound) && bits <= Double(bounds.upperBound) else {
            throw UsageError(
                "\(option) must be 0, or from \(bounds.lowerBound) to \(bounds.upperBound) bit/s, not \"\(text)\""
            )
        }
        // Not cut off: 64.1k are 64,099.99 in floating point.
        return Int(bits.rounded())
    }

    /// Parses names of streams: `a,b,c`.
    ///
    /// At least two different ones; ASCII letters, digits, `-` and `_` alone, at most 64 of them, since they go into
    /// URLs.
    static func names(_ text: String, _ option: String) throws(UsageError) -> [String] {
        let names = text.split(separator: ",").map(String.init)
        let isGood = names.allSatisfy { name in
            name.utf8.count <= 64
                && name.utf8.allSatisfy { byte in
                    let scalar = Unicode.Scalar(byte)
                    return scalar.properties.isAlphabetic && byte < 128 || (48...57).contains(byte)
                        || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
                }
        }
        guard names.count > 1, names.count <= 1_000, isGood, Set(names).count == names.count else {
            throw UsageError(
                "\(option) must be a number, or the names of two or more streams such as a,b,c, not \"\(text)\""
            )
        }
        return names
    }

    /// Parses CPU numbers: `1`, `0,2`, `4-7`.
    static func cpus(_ text: String, _ option: String) throws(UsageError) -> [Int] {
        var cpus: [Int] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
            guard let first = ends.first ?? nil, let last = ends.last ?? nil, ends.count <= 2, first <= last,
                first >= 0, last < 1_024
            else { throw UsageError("\(option) must be CPU numbers such as 1, 0,2 or 4-7, not \"\(text)\"") }
            cpus += first...last
        }
        return cpus
    }

    /// Without a decimal point where none is needed.
    private static func short(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}
