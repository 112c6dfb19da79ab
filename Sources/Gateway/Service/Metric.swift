import Base

/// A metric with its samples, as Prometheus scrapes it.
/// - Source: Prometheus text format 0.0.4.
package struct Metric: Sendable, Equatable {
    /// The metric's type, which determines what monitoring can compute from it.
    package enum Kind: String, Sendable {
        /// A total that only grows, except for a restart.
        case counter
        /// A present value, which may rise and fall.
        case gauge
        /// A distribution, as cumulative buckets with their sum and count.
        case histogram
    }

    /// One value of a metric.
    package struct Sample: Sendable, Equatable {
        /// Distinguish the samples of a metric; each set of labels occurs once.
        package let labels: [Label]
        /// In base units: seconds, bytes, or a plain number.
        package let value: Double
        /// Appended to the metric's name in a histogram's lines, such as `_bucket`; empty otherwise.
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

    /// A label's name, and its value for one sample.
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
    /// A sentence for people, sent as `# HELP`.
    package let help: String
    /// The metric's type, sent as `# TYPE`.
    package let kind: Kind
    /// One per set of labels.
    ///
    /// Labels never contain names of streams or people, which would make too many time series.
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

    /// A histogram of durations in seconds, one distribution per set of labels.
    package init(_ name: String, _ help: String, _ distributions: [(labels: [Label], DurationHistogram)]) {
        self.init(
            name, .histogram, help,
            distributions.flatMap { labels, histogram in
                let total = Double(histogram.count)
                // Every bucket contains those before it; the last one, `+Inf`, equals the count.
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
    /// All metrics in the text format.
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

    /// Whole numbers without a fraction, as a `Double` below 1e15 represents them exactly.
    private static func text(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
    }

    /// Escapes backslashes and line feeds; quotes are allowed in help texts.
    private static func escapedHelp(_ text: String) -> String {
        escaped(text, quotes: false)
    }

    /// Escapes a label's value.
    private static func escaped(_ value: String, quotes: Bool = true) -> String {
        var result = String.UnicodeScalarView()
        // By scalars: "\r\n" is one character, and so is a quote with an accent.
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": result.append(contentsOf: "\\\\".unicodeScalars)
            case "\"" where quotes: result.append(contentsOf: "\\\"".unicodeScalars)
            case "\n": result.append(contentsOf: "\\n".unicodeScalars)
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
