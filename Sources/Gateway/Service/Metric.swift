import Base

/// One number to watch, with its meaning.
/// - Source: Prometheus text format 0.0.4.
package struct Metric: Sendable, Equatable {
    /// How monitoring may calculate with it.
    package enum Kind: String, Sendable {
        case counter
        case gauge
        case histogram
    }

    /// One value of a metric.
    package struct Sample: Sendable, Equatable {
        /// Tell the samples of a metric apart; each set stands once.
        package let labels: [Label]
        /// In base units: seconds, bytes, or a number.
        package let value: Double
        /// What a histogram's lines add to its name.
        fileprivate let suffix: String

        package init(_ value: Double, _ labels: [Label] = []) {
            self.init(value, labels, suffix: "")
        }

        fileprivate init(_ value: Double, _ labels: [Label], suffix: String) {
            self.labels = labels
            self.value = value
            self.suffix = suffix
        }
    }

    /// A name, and which of its values the sample is for.
    package struct Label: Sendable, Equatable {
        let name: String
        let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// `rostrum_…`, ending in the unit, and `_total` for counters.
    package let name: String
    /// A sentence for people.
    package let help: String
    /// A counter never falls but for a restart.
    package let kind: Kind
    /// Labels are never names of streams or people, so that there are few.
    package let samples: [Sample]

    package init(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
        self.name = name
        self.help = help
        self.kind = kind
        self.samples = samples
    }

    /// One value, without labels.
    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        self.init(name, kind, help, [Sample(value)])
    }

    /// Distributions of durations, in seconds.
    package init(_ name: String, _ help: String, _ distributions: [(labels: [Label], DurationHistogram)]) {
        self.init(
            name, .histogram, help,
            distributions.flatMap { labels, histogram in
                let total = Double(histogram.count)
                return histogram.cumulative.map { bucket in
                    Sample(
                        Double(bucket.count), labels + [Label("le", "\(bucket.seconds)")], suffix: "_bucket")
                } + [
                    Sample(total, labels + [Label("le", "+Inf")], suffix: "_bucket"),
                    Sample(Double(histogram.nanoseconds) / 1e9, labels, suffix: "_sum"),
                    Sample(total, labels, suffix: "_count"),
                ]
            })
    }
}

extension [Metric] {
    /// As Prometheus reads it.
    package var text: String {
        var text = ""
        for metric in self {
            text += "# HELP \(metric.name) \(Self.escapedHelp(metric.help))\n"
            text += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
            for sample in metric.samples {
                let labels = sample.labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(
                    separator: ",")
                text += "\(metric.name)\(sample.suffix)\(labels.isEmpty ? "" : "{\(labels)}")"
                text += " \(Self.text(sample.value))\n"
            }
        }
        return text
    }

    private static func text(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
    }

    private static func escapedHelp(_ text: String) -> String {
        text.contains { $0 == "\\" || $0 == "\n" } ? escaped(text, quotes: false) : text
    }

    private static func escaped(_ value: String, quotes: Bool = true) -> String {
        var result = ""
        for character in value {
            switch character {
            case "\\": result += "\\\\"
            case "\"" where quotes: result += "\\\""
            case "\n": result += "\\n"
            default: result.append(character)
            }
        }
        return result
    }
}
