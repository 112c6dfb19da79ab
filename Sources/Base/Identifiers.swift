/// The name of a stream.
///
/// 1 to 64 characters of `A-Z a-z 0-9 _ -`, so that it can stand in a URL path unchanged.
package struct StreamID: Hashable, Sendable, CustomStringConvertible {
    /// The name itself, as in the API and the store.
    package let description: String

    /// - Returns: nil if the name is empty, too long or contains any other character.
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

    /// For names that no client can choose.
    private init(reserved: String) {
        description = reserved
    }

    /// Used instead of a stream for sessions that may watch all streams.
    ///
    /// It contains a character that `init?(_:)` refuses, so no text yields it.
    package static let feed = StreamID(reserved: "~feed")
}

/// The identity of a person or a program in a stream: the `sub` of its token.
///
/// 1 to 128 printable characters.
package struct ParticipantID: Hashable, Sendable, CustomStringConvertible {
    /// The identity itself; compared exactly, including letter case.
    package let description: String

    /// - Returns: nil if it is empty, too long or contains a control or formatting character.
    package init?(_ text: some StringProtocol) {
        guard !text.holdsFormatting, let kept = Self(kept: text) else { return nil }
        self = kept
    }

    /// Accepts what an earlier version, with fewer rules, has accepted and stored.
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
    /// Whether it contains an invisible character that changes how the rest is read, such as U+202E, which reverses
    /// the direction of everything that follows, even beyond the name.
    ///
    /// Joiners are permitted, because Persian and emoji of families need them. Tags are permitted behind the black
    /// flag, which they turn into the flag of England, for example (UTS #51, ED-14a).
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

/// The name of a session: the server's end of one peer connection.
///
/// 128 random bits in hexadecimal. It is part of session URLs, where it must not be guessable (RFC 9725 §5).
package struct SessionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    /// - Parameter random: cryptographic outside of tests, because anyone who knows the name may end the session.
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

    /// The first eight digits, for logs.
    ///
    /// They distinguish sessions without disclosing the whole name, which would permit readers of the log to change
    /// or end a session.
    package var label: String { String(description.prefix(Self.labelLength)) }
    /// Digits of a label.
    package static let labelLength = 8

    /// An arbitrary order, which depends on the names alone.
    package static func < (left: SessionID, right: SessionID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// 32 lower-case hexadecimal digits, as `init?(_:)` accepts them.
    package var description: String {
        [high, low].map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}

/// The name of a published audio or video source; unique within the process.
package struct TrackID: Hashable, Sendable, CustomStringConvertible {
    /// Distinguishes the tracks of the process.
    package let number: UInt64

    /// - Parameter number: not in use for another track.
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
