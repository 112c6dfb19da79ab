/// Packets kept in Tests/Fixtures, one a line in hexadecimal; lines with `#` are notes.
package struct PacketCapture: Sendable {
    package enum Failure: Error {
        case notHexadecimal(line: Int)
    }

    package let packets: [[UInt8]]
    /// Without their `#`.
    package let notes: [Substring]

    /// - Parameter path: below Tests/Fixtures.
    package init(_ path: String) throws {
        var packets: [[UInt8]] = []
        var notes: [Substring] = []
        for (number, line) in try Fixtures.text(path).split(separator: "\n").enumerated() {
            if line.hasPrefix("#") {
                notes.append(line.drop { $0 == "#" || $0 == " " })
            } else {
                packets.append(try Self.bytes(line, number: number))
            }
        }
        self.packets = packets
        self.notes = notes
    }

    /// The id that a note `a=extmap:ID URI` or `a=extmap:ID/DIRECTION URI` gives a header extension.
    package func extensionID(_ uri: String) -> UInt8? {
        for note in notes where note.hasPrefix("a=extmap:") {
            let words = note.dropFirst("a=extmap:".count).split(separator: " ")
            guard words.count == 2, words[1] == uri else { continue }
            return UInt8(words[0].prefix { $0 != "/" })
        }
        return nil
    }

    private static func bytes(_ line: Substring, number: Int) throws -> [UInt8] {
        let digits = line.compactMap(\.hexDigitValue)
        guard digits.count == line.count, digits.count.isMultiple(of: 2) else {
            throw Failure.notHexadecimal(line: number + 1)
        }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
