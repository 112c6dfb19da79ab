import Foundation

/// Encodes a report as JSON that people can read and tools can compare: indented, with sorted keys.
enum JSONReport {
    static func data(_ report: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(report) + Data("\n".utf8)
    }
}
