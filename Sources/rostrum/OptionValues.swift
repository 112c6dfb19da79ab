import Base

/// Why a configuration cannot be used, in words that tell an operator how to correct it.
struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// The options that one source sets, by name, each with the place it came from.
///
/// Values are texts at this stage: their meaning is checked in `Configuration`, once the sources are merged.
struct OptionValues: Sendable, Equatable {
    /// An option's value or values, and their source.
    struct Value: Sendable, Equatable {
        /// Exactly one text unless the option is a list.
        var texts: [String]
        /// The option as its source spells it, for messages, such as `--http` or `http in line 3 of rostrum.toml`.
        let origin: String
        /// The source without the option's name: `--http`, `ROSTRUM_HTTP`, `line 3 of rostrum.toml`.
        let place: String
    }

    private(set) var values: [String: Value] = [:]
    /// Earlier keys, from the file that `secret-file` names.
    private(set) var previousSecrets: [String] = []

    subscript(_ name: String) -> Value? { values[name] }

    /// - Throws: if the text is empty, or if an option with one value is given twice.
    private mutating func add(
        _ option: Option, _ text: String, origin: String, place: String? = nil
    ) throws(ConfigurationError) {
        // An empty variable is usually a mistake in a script. A list may be empty: a flag with an empty value overrides
        // the list of another source.
        guard !text.isEmpty || option.kind == .list else {
            throw ConfigurationError("\(origin) is empty; set a value or leave it out")
        }
        guard let present = values[option.name] else {
            values[option.name] = Value(texts: [text], origin: origin, place: place ?? origin)
            return
        }
        guard option.kind == .list else {
            throw ConfigurationError("\(origin) is set more than once (already by \(present.origin))")
        }
        values[option.name]?.texts.append(text)
    }

    /// The options of both; where both set an option, `other` wins, also for lists.
    func overridden(by other: OptionValues) -> OptionValues {
        var result = self
        result.values.merge(other.values) { _, new in new }
        return result
    }

    // MARK: Sources

    /// Parses flags: `--name value`, `--name=value`, `--toggle`.
    /// - Parameters:
    ///   - options: the flags that the command accepts.
    ///   - operand: the option that an argument without a name sets; nil if the command takes none.
    /// - Returns: the options, and which of `--help`, `--check-config` and `--version` were given.
    /// - Throws: if a flag is unknown, lacks its value, or is given twice.
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
                // A flag with one dash too few is no name of a directory.
                if let operand, !argument.hasPrefix("-") {
                    try result.add(operand, argument, origin: operand.placeholder)
                    continue
                }
                throw ConfigurationError("unexpected argument \(argument); options begin with --")
            }
            let parts = argument.dropFirst(2).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, let option = options.first(where: { $0.name == name }) else {
                throw ConfigurationError(
                    "unknown option \(argument)"
                        + Option.advice(instead: parts.first ?? "", of: options))
            }
            if parts.count == 2 {
                try result.add(option, String(parts[1]), origin: "--\(name)")
            } else if option.kind == .toggle {
                try result.add(option, "true", origin: "--\(name)")
            } else if let value = rest.popFirst() {
                try result.add(option, value, origin: "--\(name)")
            } else {
                throw ConfigurationError("--\(name) needs a value: --\(name) \(option.placeholder)")
            }
        }
        return (result, requests)
    }

    /// Parses variables named `ROSTRUM_…`; those that name no option may belong to other programs and are ignored.
    static func parse(environment: [String: String]) throws(ConfigurationError) -> OptionValues {
        var result = OptionValues()
        // Sorted, so that of several errors the same one is always reported.
        for (variable, text) in environment.sorted(by: { $0.key < $1.key })
        where variable.hasPrefix("ROSTRUM_") {
            guard let option = Option.all.first(where: { $0.variable == variable }) else { continue }
            guard option.kind == .list else {
                try result.add(option, text, origin: variable)
                continue
            }
            // A variable cannot be given several times: blanks separate the elements of a list.
            for part in text.split(separator: " ") { try result.add(option, String(part), origin: variable) }
        }
        return result
    }

    /// Parses the text of a configuration file.
    ///
    /// Unlike variables, all names must be options, because the file is for this program alone.
    /// - Parameter file: the file's name, for messages.
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
            // A file cannot name another file.
            guard let option = Option.named(entry.key), option.name != "config" else {
                throw ConfigurationError(
                    "\(place): unknown option \(entry.key)" + Option.advice(instead: entry.key))
            }
            let texts = try texts(of: entry, for: option, at: place)
            for text in texts {
                try result.add(option, text, origin: "\(option.name) in \(place)", place: place)
            }
        }
        return result
    }

    /// The value of one line as texts.
    /// - Throws: if the value's type does not fit the option.
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

    /// The options with the secret, and the earlier keys, from the file that `secret-file` names.
    ///
    /// A secret that is set directly wins, and the file is not read then.
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
    /// Without blanks, tabs and carriage returns at the end, and without blanks and tabs at the start.
    var trimmingBlanks: String {
        var text = Substring(self)
        while let last = text.last, last == " " || last == "\t" || last == "\r" || last == "\r\n" {
            text.removeLast()
        }
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        return String(text)
    }
}
