import Base

/// `rostrum config show`: each option, what it comes to, and who said so.
struct ConfigCommand: Sendable {
    private let values: OptionValues
    private let configuration: Configuration

    init(_ values: OptionValues, processors: Int) throws(ConfigurationError) {
        self.values = values
        configuration = try Configuration(values, processors: processors)
    }

    /// Lines that are a configuration file, but for secrets, with the place that each comes from.
    var text: String {
        let lines = configuration.settings.map { setting in
            let line = setting.value.map { "\(setting.name) = \($0.text)" } ?? "# \(setting.name):"
            let place = values[setting.name]?.place ?? (setting.value == nil ? "not set" : "default")
            return (line: line, place: setting.value == nil ? place : "# \(place)")
        }
        let width = min(48, lines.map(\.line.count).max() ?? 0)
        return lines.map { line, place in
            line + String(repeating: " ", count: max(2, width - line.count + 2)) + place + "\n"
        }.joined()
    }
}
