/// Reads Prometheus' text format, and complains of whatever a strict reader would not take.
/// - Source: Prometheus text format 0.0.4; OpenMetrics' rules for names and histograms.
struct Exposition {
    struct Complaint: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// Values by name and labels, as written.
    private(set) var values: [String: Double] = [:]
    private(set) var types: [String: String] = [:]
    private var family = ""

    init(_ text: String) throws {
        guard text.hasSuffix("\n") else { throw Complaint("no line end at the end") }
        for line in text.split(separator: "\n") {
            if line.hasPrefix("# HELP ") {
                try readHelp(line)
            } else if line.hasPrefix("# TYPE ") {
                try readType(line)
            } else {
                try readSample(line)
            }
        }
        for (name, type) in types where type == "histogram" { try checkHistogram(name) }
    }

    /// The value of the only series of a name.
    subscript(series: String) -> Double? { values[series] }

    private mutating func readHelp(_ line: Substring) throws {
        let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4, !words[3].isEmpty else { throw Complaint("no help: \(line)") }
        family = String(words[2])
        let allowed = family.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || $0 == "_") }
        guard allowed, types[family] == nil else { throw Complaint("bad or repeated name: \(family)") }
    }

    private mutating func readType(_ line: Substring) throws {
        let words = line.split(separator: " ")
        guard words.count == 4, words[2] == family, types[family] == nil else {
            throw Complaint("a type without its help: \(line)")
        }
        guard ["counter", "gauge", "histogram"].contains(words[3]) else { throw Complaint("\(line)") }
        guard (words[3] == "counter") == family.hasSuffix("_total") else {
            throw Complaint("counters end with _total, and nothing else: \(family)")
        }
        types[family] = String(words[3])
    }

    private mutating func readSample(_ line: Substring) throws {
        guard let blank = line.lastIndex(of: " "), let value = Double(line[line.index(after: blank)...]),
            value >= 0
        else { throw Complaint("no value: \(line)") }
        let series = String(line[..<blank])
        let name = series.prefix { $0 != "{" }
        let suffixes = types[family] == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
        guard suffixes.contains(where: { family + $0 == name }) else {
            throw Complaint("\(name) stands under \(family)")
        }
        guard values.updateValue(value, forKey: series) == nil else { throw Complaint("twice: \(series)") }
    }

    /// Buckets grow to the count, for each set of labels.
    private func checkHistogram(_ name: String) throws {
        let sums = values.keys.filter { $0.hasPrefix(name + "_sum") }
        guard !sums.isEmpty || !values.keys.contains(where: { $0.hasPrefix(name + "_") }) else {
            throw Complaint("\(name) has no sum")
        }
        for sum in sums {
            let labels = sum.dropFirst(name.count + 4).dropFirst().dropLast()
            let start = name + "_bucket{" + labels + (labels.isEmpty ? "" : ",") + "le=\""
            let buckets = values.filter { $0.key.hasPrefix(start) }.compactMap { key, value in
                let bound = key.dropFirst(start.count).dropLast(2)
                return (bound == "+Inf" ? Double.infinity : Double(bound)).map { ($0, value) }
            }.sorted { $0.0 < $1.0 }
            guard buckets.count > 1, zip(buckets, buckets.dropFirst()).allSatisfy({ $0.1 <= $1.1 }),
                buckets.last?.0 == .infinity,
                buckets.last?.1 == values[name + "_count" + sum.dropFirst(name.count + 4)]
            else { throw Complaint("the buckets of \(sum) do not add up") }
        }
    }
}
