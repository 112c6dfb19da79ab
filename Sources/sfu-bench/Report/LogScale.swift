import Foundation

/// Powers of ten for the axes of plots.
enum LogScale {
    static func log10(_ value: Double) -> Double { Foundation.log10(max(value, .leastNormalMagnitude)) }

    /// The largest power of ten that does not exceed a positive value.
    static func powerOfTen(below value: Double) -> Double {
        pow(10, Foundation.log10(max(value, 1e-12)).rounded(.down))
    }
}

/// Escapes text for HTML and for attributes in double quotes.
enum HTMLText {
    static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        // By scalars, as browsers parse: a combining mark after "<" makes one Swift character of both.
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result.append(contentsOf: "&amp;".unicodeScalars)
            case "<": result.append(contentsOf: "&lt;".unicodeScalars)
            case ">": result.append(contentsOf: "&gt;".unicodeScalars)
            case "\"": result.append(contentsOf: "&quot;".unicodeScalars)
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
