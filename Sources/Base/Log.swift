/// Writes one line per event, readable by people and programs.
///
/// It is a value that `main` passes on, not a global, so that tests see their own lines. An entry is built only if
/// its level is on. It is never used per packet.
package struct Log: Sendable {
    /// The importance of a line; a log writes lines of its own level and higher.
    package enum Level: String, Comparable, CaseIterable, Sendable {
        case debug, info, warning, error

        package static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }

        private var rank: Int {
            switch self {
            case .debug: 0
            case .info: 1
            case .warning: 2
            case .error: 3
            }
        }
    }

    /// The value of a field, as plain text.
    package struct Value: Sendable {
        /// Unquoted; `Entry` quotes it as its format requires.
        package let text: String
        /// Whether it is a number or a truth value, whose text is valid JSON as it is.
        package let isLiteral: Bool

        init(_ value: any CustomStringConvertible) {
            text = value.description
            isLiteral =
                switch value {
                case is any BinaryInteger, is Bool: true
                case let number as Double: number.isFinite
                case let number as Float: number.isFinite
                default: false
                }
        }
    }

    /// One event: `level subsystem event key=value …`.
    package struct Entry: Sendable {
        /// The names of what every line contains; a field with one of these names is renamed.
        package static let reservedKeys: Set<String> = ["time", "level", "subsystem", "event"]

        /// At least the log's level.
        package let level: Level
        /// The part of the server that writes the line, such as `node`.
        package let subsystem: String
        /// What happened, as a fixed word such as `session.closed`, so that lines can be counted.
        package let event: String
        /// In the order in which they were passed.
        package let fields: [(key: String, value: Value)]
    }

    /// Entries below this level are not built.
    package let level: Level
    private let subsystem: String
    private let sink: @Sendable (Entry) -> Void

    /// - Parameter sink: called on the thread that logs; must not block.
    package init(level: Level, subsystem: String = "server", sink: @escaping @Sendable (Entry) -> Void) {
        self.level = level
        self.subsystem = subsystem
        self.sink = sink
    }

    /// A log that drops everything.
    package static let silent = Log(level: .error) { _ in }

    /// The same log under the name of another subsystem.
    package func subsystem(_ name: String) -> Log {
        Log(level: level, subsystem: name, sink: sink)
    }

    /// For details that help in finding errors; fields are evaluated only if the level is on.
    package func debug(
        _ event: String, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.debug, event, fields)
    }

    /// For normal events; fields are evaluated only if the level is on.
    package func info(
        _ event: String, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.info, event, fields)
    }

    /// For conditions that an operator may want to change, while the server continues.
    package func warning(
        _ event: String, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.warning, event, fields)
    }

    /// For something that should have been done and was not.
    package func error(
        _ event: String, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.error, event, fields)
    }

    /// Builds an entry and passes it to the sink, if the level is on.
    private func write(
        _ level: Level, _ event: String, _ fields: () -> KeyValuePairs<String, any CustomStringConvertible>
    ) {
        guard level >= self.level else { return }
        let fields = fields().map { (key: $0.key, value: Value($0.value)) }
        sink(Entry(level: level, subsystem: subsystem, event: event, fields: fields))
    }
}

extension Log.Entry {
    /// `info peer connected session=… address="…"`; values with blanks or quotes are quoted.
    package var text: String {
        var line = "\(level.rawValue) \(subsystem) \(event)"
        for (key, value) in fields { line += " \(key)=\(Self.quotedIfNeeded(value.text))" }
        return line
    }

    /// The entry as a JSON object in which each name occurs once, because parsers keep only the last of several.
    ///
    /// A field whose name is taken or reserved gets an underscore appended.
    package var json: String {
        var line = "{"
        for (key, value) in [("level", level.rawValue), ("subsystem", subsystem), ("event", event)] {
            line += "\(Self.quoted(key)):\(Self.quoted(value)),"
        }
        var names = Self.reservedKeys
        for (key, value) in fields {
            var name = key
            while !names.insert(name).inserted { name += "_" }
            line += "\(Self.quoted(name)):\(value.isLiteral ? value.text : Self.quoted(value.text)),"
        }
        return line.dropLast() + "}"
    }

    /// Quotes a value that would not end at the next blank, or is not plain ASCII.
    private static func quotedIfNeeded(_ value: String) -> String {
        let isPlain =
            !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x5C && $0 < 0x7F }
        return isPlain ? value : quoted(value)
    }

    /// Quotes and escapes as RFC 8259 §7 requires, which also keeps each event on one line.
    private static func quoted(_ value: String) -> String {
        var result = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
