/// A configuration file: one flat TOML table of strings, integers, truth values and arrays of strings.
///
/// Strict: what TOML has beyond that (sections, dotted and quoted keys, floats, dates, strings of several lines) is
/// refused with its line, and so is what is no TOML.
/// - Source: TOML v1.0.0.
package struct TOMLTable: Equatable, Sendable {
    package enum Value: Equatable, Sendable {
        case string(String)
        case integer(Int)
        case boolean(Bool)
        case strings([String])
    }

    package struct Entry: Equatable, Sendable {
        package let key: String
        package let value: Value
        /// The first is 1.
        package let line: Int
    }

    /// What is wrong, and where.
    package struct Failure: Error, Equatable, CustomStringConvertible {
        /// The first is 1.
        package let line: Int
        /// In words that say how to mend it, without the line.
        package let reason: String

        package var description: String { "line \(line): \(reason)" }
    }

    /// In the order of the file; no key stands there twice.
    package private(set) var entries: [Entry] = []

    package init(parsing text: String) throws(Failure) {
        var reader = TOMLReader(text)
        var lines: [String: Int] = [:]
        while let entry = try reader.next() {
            if let first = lines.updateValue(entry.line, forKey: entry.key) {
                throw Failure(
                    line: entry.line, reason: "\(entry.key) has a value already, in line \(first)")
            }
            entries.append(entry)
        }
    }

    package subscript(_ key: String) -> Value? { entries.first { $0.key == key }?.value }

    /// A key that needs no quotes.
    package static func isBareKey(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.unicodeScalars.allSatisfy(TOMLReader.isKeyScalar)
    }
}

extension TOMLTable.Value {
    /// As it stands in a file; read again, it is the same value.
    package var text: String {
        switch self {
        case .string(let text): Self.quoted(text)
        case .integer(let number): String(number)
        case .boolean(let isTrue): isTrue ? "true" : "false"
        case .strings(let texts): "[" + texts.map(Self.quoted).joined(separator: ", ") + "]"
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "\r": result += "\\r"
            case _ where TOMLReader.isControl(scalar):
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
