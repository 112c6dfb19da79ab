/// Writes numbers as people read them; `-` stands for a number that is not finite.
enum Format {
    /// At least three significant digits from 1 on, and never an exponent: 0.034, 1.25, 12.5, 125, 1250.
    static func short(_ value: Double) -> String {
        guard value.isFinite else { return "-" }
        let magnitude = abs(value)
        let places = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
        return fixed(value, places)
    }

    /// With exactly `places` decimal places.
    static func fixed(_ value: Double, _ places: Int) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "-" }
        var scale = 1.0
        for _ in 0..<places { scale *= 10 }
        let scaled = Int((abs(value) * scale).rounded())
        // -0.0 would look like an error in a table.
        let sign = value < 0 && scaled != 0 ? "-" : ""
        let whole = scaled / Int(scale)
        guard places > 0 else { return sign + String(whole) }
        let rest = String(scaled % Int(scale))
        return sign + String(whole) + "." + String(repeating: "0", count: places - rest.count) + rest
    }

    /// A whole number in groups of three digits: 12 345 678.
    static func count(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "-" }
        let digits = String(Int(abs(value).rounded()))
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text += " " }
            text.append(digit)
        }
        return (value <= -0.5 ? "-" : "") + text
    }

    /// A server's text as one line of a report: without control and direction characters, cut off at `limit`.
    static func line(_ text: String, limit: Int = 200) -> String {
        var line = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(limit) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: line.append(" ")
            default: line.append(scalar)
            }
        }
        return String(line)
    }

    /// Bytes in kB or MB, which are powers of ten.
    static func bytes(_ value: Int) -> String {
        abs(value) < 1_000_000 ? short(Double(value) / 1e3) + " kB" : short(Double(value) / 1e6) + " MB"
    }
}
