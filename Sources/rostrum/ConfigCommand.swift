import Base

/// `rostrum config show`: prints each option, its effective value, and the source of the value.
struct ConfigCommand: Sendable {
    private let values: OptionValues
    private let configuration: Configuration

    /// - Throws: if the options make no sense together.
    init(_ values: OptionValues, processors: Int) throws(ConfigurationError) {
        self.values = values
        configuration = try Configuration(values, processors: processors)
    }

    /// A configuration file without secrets, with the source of each value in a comment.
    ///
    /// Options that are not set are comments as well, so that all names are visible.
    var text: String {
        let lines = configuration.settings.map { setting in
            let line = setting.value.map { "\(setting.name) = \($0.text)" } ?? "# \(setting.name):"
            let place = values[setting.name]?.place ?? (setting.value == nil ? "not set" : "default")
            return (line: line, place: (setting.value == nil ? "" : "# ") + Self.onOneLine(place))
        }
        // Sources line up in one column, which long values may exceed.
        let width = min(48, lines.map(\.line.count).max() ?? 0)
        return lines.map { line, place in
            line + String(repeating: " ", count: max(2, width - line.count + 2)) + place + "\n"
        }.joined()
    }

    /// A place with its control characters escaped: a file's name may have a line break, which would end the comment.
    private static func onOneLine(_ place: String) -> String {
        place.unicodeScalars.map { scalar in
            guard scalar.value < 0x20 || scalar.value == 0x7F else { return String(scalar) }
            return String(TOMLTable.Value.string(String(scalar)).text.dropFirst().dropLast())
        }.joined()
    }
}
