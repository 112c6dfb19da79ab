import Base

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
        /// For messages: `--http`, `ROSTRUM_HTTP`, `http in line 3 of rostrum.toml`.
        let origin: String
        /// The same without the name: `--http`, `ROSTRUM_HTTP`, `line 3 of rostrum.toml`.
        let place: String
    }

    private(set) var values: [String: Value] = [:]
    /// Keys of before, out of the file that `secret-file` names.
    private(set) var previousSecrets: [String] = []

    subscript(_ name: String) -> Value? { values[name] }

    /// - Throws: when an option that takes one value is given twice.
    private mutating func add(
        _ option: Option, _ text: String, origin: String, place: String? = nil
    ) throws(ConfigurationError) {
        guard !text.isEmpty || option.kind == .list else {
            throw ConfigurationError("\(origin) is empty; give it a value or leave it out")
        }
        guard let present = values[option.name] else {
            values[option.name] = Value(texts: [text], origin: origin, place: place ?? origin)
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
    /// - Parameters:
    ///   - options: that there are.
    ///   - operand: what stands by itself, without a name; nil for nothing.
    /// - Returns: the options, and what is not theirs.
    static func parse(
        arguments: [String], options: [Option] = Option.all, operand: Option? = nil
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
                if let operand {
                    try result.add(operand, argument, origin: operand.placeholder)
                    continue
                }
                throw ConfigurationError("\(argument) is no option; options begin with --")
            }
            let parts = argument.dropFirst(2).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, let option = options.first(where: { $0.name == name }) else {
                throw ConfigurationError(
                    "there is no option \(argument)"
                        + Option.advice(instead: parts.first ?? "", of: options))
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

    /// A file as `ConfigurationFile` reads it.
    /// - Parameter file: its name, for messages.
    static func parse(file text: String, name file: String) throws(ConfigurationError) -> OptionValues {
        let table: TOMLTable
        do throws(TOMLTable.Failure) {
            table = try TOMLTable(parsing: text)
        } catch {
            throw ConfigurationError("line \(error.line) of \(file): \(error.reason)")
        }
        var result = OptionValues()
        for entry in table.entries {
            let place = "line \(entry.line) of \(file)"
            guard let option = Option.named(entry.key), option.name != "config" else {
                throw ConfigurationError(
                    "\(place): there is no option \(entry.key)" + Option.advice(instead: entry.key))
            }
            let texts = try texts(of: entry, for: option, at: place)
            for text in texts {
                try result.add(option, text, origin: "\(option.name) in \(place)", place: place)
            }
        }
        return result
    }

    private static func texts(
        of entry: TOMLTable.Entry, for option: Option, at place: String
    ) throws(ConfigurationError) -> [String] {
        switch (option.kind, entry.value) {
        case (.toggle, .boolean(let isOn)): return [isOn ? "true" : "false"]
        case (.text, .string(let text)), (.list, .string(let text)): return [text]
        case (.text, .integer(let number)): return [String(number)]
        case (.list, .strings(let texts)): return texts
        case (.toggle, _):
            throw ConfigurationError("\(place): \(option.name) must be true or false, without quotes")
        case (.text, _):
            throw ConfigurationError(
                "\(place): \(option.name) must be one string in quotes or a number: \(option.placeholder)")
        case (.list, _):
            throw ConfigurationError(
                "\(place): \(option.name) must be a string in quotes, or a list of them: [\"\(option.placeholder)\"]"
            )
        }
    }

    // MARK: Secrets

    /// With the secret, and those of before, out of the file that `secret-file` names, unless there is one already.
    func withSecretFile() throws(ConfigurationError) -> OptionValues {
        guard self["secret"] == nil, let named = self["secret-file"],
            let secrets = try SecretFile.read(named), let option = Option.named("secret")
        else { return self }
        var result = self
        let path = named.texts.first ?? ""
        try result.add(option, secrets.key.exposed, origin: "the secret in \(path)", place: path)
        result.previousSecrets = secrets.previous.map(\.exposed)
        return result
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
