/// Writes one line per event, for people and for machines.
///
/// A value handed down from `main`, not a global, so that tests see their own lines. An entry is built only
/// when its level is on. Never used per packet.
package struct Log: Sendable {
    /// How much a line matters; ordered, so that a log shows its own level and those above.
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

    /// What a field says, in plain text.
    package struct Value: Sendable {
        /// Not quoted yet; `Entry` quotes for its format.
        package let text: String
        /// A number or a truth value, whose text is JSON as it stands.
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
        /// What each line says of itself: no field may have these names.
        package static let reservedKeys: Set<String> = ["time", "level", "subsystem", "event"]

        /// Never below the log's.
        package let level: Level
        /// The part of the server that speaks, such as `node`.
        package let subsystem: String
        /// What happened, in fixed words such as `session.closed`, so that lines can be counted.
        package let event: String
        /// In the order in which they were given.
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

    /// Drops everything.
    package static let silent = Log(level: .error) { _ in }

    /// The same log under another subsystem's name.
    package func subsystem(_ name: String) -> Log {
        Log(level: level, subsystem: name, sink: sink)
    }

    /// Fields are not made unless the level is on.
    package func debug(
        _ event: String, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.debug, event, fields)
    }

    /// For what happens in the ordinary course; fields are not made unless the level is on.
    package func info(
        _ event: String, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.info, event, fields)
    }

    /// For what an operator may want to change, while the server goes on.
    package func warning(
        _ event: String, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.warning, event, fields)
    }

    /// For what was not done, and should have been.
    package func error(
        _ event: String, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.error, event, fields)
    }

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

    /// The same as one JSON object, in which each name stands once: parsers keep the last of several.
    ///
    /// A field that has the name of another, or a reserved one, gets an underscore after its name.
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

    private static func quotedIfNeeded(_ value: String) -> String {
        let isPlain =
            !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x5C && $0 < 0x7F }
        return isPlain ? value : quoted(value)
    }

    /// Escapes what RFC 8259 §7 demands, which also keeps one event on one line.
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
