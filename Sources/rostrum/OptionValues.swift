/// What is wrong with what the program was told, in words that say how to mend it.
struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// The options of one source, by name, with the place each came from.
struct OptionValues: Sendable, Equatable {
    struct Value: Sendable, Equatable {
        var texts: [String]
        /// For messages: `--http`, `ROSTRUM_HTTP`, `line 3 of rostrum.conf`.
        let origin: String
    }

    private(set) var values: [String: Value] = [:]

    subscript(_ name: String) -> Value? { values[name] }

    /// - Throws: when an option that takes one value is given twice.
    private mutating func add(_ option: Option, _ text: String, origin: String) throws(ConfigurationError) {
        guard !text.isEmpty || option.kind == .list else {
            throw ConfigurationError("\(origin) is empty; give it a value or leave it out")
        }
        guard let present = values[option.name] else {
            values[option.name] = Value(texts: [text], origin: origin)
            return
        }
        guard option.kind == .list else {
            throw ConfigurationError("\(origin) was given already (\(present.origin))")
        }
        values[option.name]?.texts.append(text)
    }

    /// Options of `other` win.
    func overridden(by other: OptionValues) -> OptionValues {
        var result = self
        result.values.merge(other.values) { _, new in new }
        return result
    }

    // MARK: Sources

    /// Flags: `--name value`, `--name=value`, `--toggle`.
    /// - Parameter options: that there are.
    /// - Returns: the options, and what is not theirs.
    static func parse(
        arguments: [String], options: [Option] = Option.all
    ) throws(ConfigurationError) -> (values: OptionValues, requests: Set<String>) {
        var result = OptionValues()
        var requests: Set<String> = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if ["--help", "-h", "--check-config", "--version"].contains(argument) {
                requests.insert(argument == "-h" ? "--help" : argument)
                continue
            }
            guard argument.hasPrefix("--") else {
                throw ConfigurationError("\(argument) is no option; options begin with --")
            }
            let parts = argument.dropFirst(2).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, let option = options.first(where: { $0.name == name }) else {
                throw ConfigurationError("there is no option \(argument); rostrum --help lists them all")
            }
            if parts.count == 2 {
                try result.add(option, String(parts[1]), origin: "--\(name)")
            } else if option.kind == .toggle {
                try result.add(option, "true", origin: "--\(name)")
            } else if let value = rest.popFirst() {
                try result.add(option, value, origin: "--\(name)")
            } else {
                throw ConfigurationError("--\(name) wants a value: --\(name) \(option.placeholder)")
            }
        }
        return (result, requests)
    }

    /// `ROSTRUM_…` variables; those that name no option are somebody else's.
    static func parse(environment: [String: String]) throws(ConfigurationError) -> OptionValues {
        var result = OptionValues()
        for (variable, text) in environment.sorted(by: { $0.key < $1.key })
        where variable.hasPrefix("ROSTRUM_") {
            guard let option = Option.all.first(where: { $0.variable == variable }) else { continue }
            guard option.kind == .list else {
                try result.add(option, text, origin: variable)
                continue
            }
            for part in text.split(separator: " ") { try result.add(option, String(part), origin: variable) }
        }
        return result
    }

    /// Lines `name = value`; empty lines and what follows a # are left out.
    static func parse(file text: String, name file: String) throws(ConfigurationError) -> OptionValues {
        var result = OptionValues()
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let origin = "line \(index + 1) of \(file)"
            let content = withoutComment(line).trimmingBlanks
            guard !content.isEmpty else { continue }
            let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw ConfigurationError("\(origin) is not of the form name = value")
            }
            let name = parts[0].trimmingBlanks
            guard let option = Option.named(name), name != "config" else {
                throw ConfigurationError(
                    "\(origin): there is no option \(name); rostrum --help lists them all")
            }
            var value = parts[1].trimmingBlanks
            if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
                value = String(value.dropFirst().dropLast())
            }
            try result.add(option, value, origin: "\(name) in \(origin)")
        }
        return result
    }

    /// A # begins a comment at the start of a line and after a blank, but not within quotes.
    private static func withoutComment(_ line: Substring) -> Substring {
        var isQuoted = false
        var previous: Character = " "
        for index in line.indices {
            let character = line[index]
            if character == "\"" { isQuoted.toggle() }
            if character == "#", !isQuoted, previous == " " || previous == "\t" { return line[..<index] }
            previous = character
        }
        return line
    }
}

extension StringProtocol {
    /// Without blanks, tabs and carriage returns at both ends.
    var trimmingBlanks: String {
        var text = Substring(self)
        while let last = text.last, last == " " || last == "\t" || last == "\r" || last == "\r\n" {
            text.removeLast()
        }
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        return String(text)
    }
}
