/// Names one live programme.
///
/// 1 to 64 of `A-Z a-z 0-9 _ -`, so that it stands in a URL path as it is.
package struct StreamID: Hashable, Sendable, CustomStringConvertible {
    /// The name itself, which is what the API and the store have.
    package let description: String

    /// - Returns: nil for a name that is empty, too long or holds any other character.
    package init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard (1...64).contains(bytes.count) else { return nil }
        for byte in bytes {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"): continue
            default: return nil
            }
        }
        description = String(text)
    }

    private init(reserved: String) {
        description = reserved
    }

    /// Stands in the place of a stream where a session belongs to none, because it may watch them all; no text is
    /// read as this.
    package static let feed = StreamID(reserved: "~feed")
}

/// Names a person or a program in a stream; the `sub` of its token.
///
/// 1 to 128 printable characters.
package struct ParticipantID: Hashable, Sendable, CustomStringConvertible {
    /// The name itself; equal only if it is the same text, letter case included.
    package let description: String

    /// - Returns: nil for a name that is empty, too long or holds a control or formatting character.
    package init?(_ text: some StringProtocol) {
        guard !text.holdsFormatting, let kept = Self(kept: text) else { return nil }
        self = kept
    }

    /// What was let in once, by a version that knew fewer rules.
    private init?(kept text: some StringProtocol) {
        guard (1...512).contains(text.utf8.count), (1...128).contains(text.count) else { return nil }
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: return nil
            default: continue
            }
        }
        description = String(text)
    }
}

extension StringProtocol {
    /// Whether it holds what nobody sees and what changes how the rest is read, such as U+202E, which turns the
    /// direction of all that follows, beyond the name too.
    ///
    /// Joiners are no such thing: Persian and families of emoji need them. Nor are tags where they belong, behind the
    /// black flag, which they make England's (UTS #51, ED-14a).
    package var holdsFormatting: Bool {
        contains { character in
            let isFlag = character.unicodeScalars.first == "\u{1F3F4}"
            return character.unicodeScalars.contains { scalar in
                guard scalar.properties.generalCategory == .format else { return false }
                if scalar == "\u{200C}" || scalar == "\u{200D}" { return false }
                return !(isFlag && (0xE0020...0xE007F).contains(scalar.value))
            }
        }
    }
}

/// Names one session: the server's end of one peer connection.
///
/// 128 random bits in hexadecimal: it stands in session URLs, where it must not be guessed (RFC 9725 §5).
package struct SessionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    /// - Parameter random: cryptographic outside of tests, because whoever knows the name may end the session.
    package init(using random: inout some RandomNumberGenerator) {
        high = random.next()
        low = random.next()
    }

    /// - Returns: nil unless `text` is 32 lower-case hexadecimal digits.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == 32 else { return nil }
        var words: [UInt64] = [0, 0]
        for (index, byte) in bytes.enumerated() {
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            case 0x61...0x66: digit = byte - 0x57
            default: return nil
            }
            words[index / 16] = words[index / 16] << 4 | UInt64(digit)
        }
        high = words[0]
        low = words[1]
    }

    /// The first eight digits: tells sessions apart in a log, and is of no use to whoever reads it, because the whole
    /// name is what lets its client change or end a session.
    package var label: String { String(description.prefix(Self.labelLength)) }
    /// In digits.
    package static let labelLength = 8

    /// An order that means nothing, and is the same wherever the names are.
    package static func < (left: SessionID, right: SessionID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// 32 lower-case hexadecimal digits, as `init?(_:)` reads them.
    package var description: String {
        [high, low].map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}

/// Names one published audio or video source; unique within the process.
package struct TrackID: Hashable, Sendable, CustomStringConvertible {
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }

    package var description: String { "t\(number)" }
}

extension StreamID: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = StreamID(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no stream's name")
        }
        self = value
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension ParticipantID: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = ParticipantID(kept: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no identity")
        }
        self = value
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
