/// A configuration file: one flat TOML table of strings, integers, truth values and arrays of strings.
///
/// It is strict: everything else in TOML (sections, dotted and quoted keys, floats, dates, multi-line strings) is
/// refused with the number of its line, and so is text that is not TOML.
/// - Source: TOML v1.0.0.
package struct TOMLTable: Equatable, Sendable {
    /// A value in one of the supported types.
    package enum Value: Equatable, Sendable {
        case string(String)
        case integer(Int)
        case boolean(Bool)
        case strings([String])
    }

    /// One setting.
    package struct Entry: Equatable, Sendable {
        /// Without quotes; see `isBareKey`.
        package let key: String
        /// The value after the `=`.
        package let value: Value
        /// Line number; the first line is 1.
        package let line: Int
    }

    /// What is wrong, and in which line.
    package struct Failure: Error, Equatable, CustomStringConvertible {
        /// Line number; the first line is 1.
        package let line: Int
        /// What is wrong and how to correct it, without the line number.
        package let reason: String

        package var description: String { "line \(line): \(reason)" }
    }

    /// In the order of the file; no key occurs twice.
    package private(set) var entries: [Entry] = []

    /// Parses a file.
    /// - Throws: on the first line that is wrong, or has a key that has a value already.
    package init(parsing text: String) throws(Failure) {
        var reader = TOMLReader(text)
        var lines: [String: Int] = [:]
        while let entry = try reader.next() {
            if let first = lines.updateValue(entry.line, forKey: entry.key) {
                throw Failure(
                    line: entry.line,
                    reason: "\(entry.key) is already set in line \(first); remove one of the two")
            }
            entries.append(entry)
        }
    }

    /// The value of a key; nil if the file does not have it.
    package subscript(_ key: String) -> Value? { entries.first { $0.key == key }?.value }

    /// Whether a key needs no quotes.
    package static func isBareKey(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.unicodeScalars.allSatisfy(TOMLReader.isKeyScalar)
    }
}

extension TOMLTable.Value {
    /// The value as it is written in a file; parsing that yields the same value.
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
