/// One number to watch, with its meaning.
/// - Source: Prometheus text format 0.0.4.
package struct Metric: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case counter
        case gauge
    }

    package struct Sample: Sendable, Equatable {
        package let labels: [Label]
        package let value: Double

        package init(_ value: Double, _ labels: [Label] = []) {
            self.labels = labels
            self.value = value
        }
    }

    package struct Label: Sendable, Equatable {
        let name: String
        let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package let name: String
    package let help: String
    package let kind: Kind
    package let samples: [Sample]

    package init(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
        self.name = name
        self.help = help
        self.kind = kind
        self.samples = samples
    }

    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        self.init(name, kind, help, [Sample(value)])
    }
}

extension [Metric] {
    /// As Prometheus reads it.
    package var text: String {
        var text = ""
        for metric in self {
            text += "# HELP \(metric.name) \(metric.help)\n# TYPE \(metric.name) \(metric.kind.rawValue)\n"
            for sample in metric.samples {
                let labels = sample.labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(
                    separator: ",")
                text += "\(metric.name)\(labels.isEmpty ? "" : "{\(labels)}") \(Self.text(sample.value))\n"
            }
        }
        return text
    }

    private static func text(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
    }

    private static func escaped(_ value: String) -> String {
        var result = ""
        for character in value {
            switch character {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.append(character)
            }
        }
        return result
    }
}
