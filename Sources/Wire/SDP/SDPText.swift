// Parsing of attribute values. All functions work on UTF-8 bytes: a `Character` may combine a separator with the
// character after it, and is slow to find.

/// Scans an attribute value from left to right.
struct SDPScanner {
    private(set) var rest: Substring.UTF8View

    init(_ text: String) {
        rest = text[...].utf8
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// The rest as text.
    var remainder: String { String(Substring(rest)) }

    /// Returns the text before `separator` and skips the separator; returns all the rest if there is none.
    mutating func take(until separator: UInt8) -> Substring {
        guard let end = rest.firstIndex(of: separator) else {
            defer { rest = rest[rest.endIndex...] }
            return Substring(rest)
        }
        defer { rest = rest[rest.index(after: end)...] }
        return Substring(rest[..<end])
    }

    /// Returns the next word, skipping spaces before it; nil at the end.
    mutating func word() -> Substring? {
        skipSpaces()
        guard !rest.isEmpty else { return nil }
        let end = rest.firstIndex(of: .space) ?? rest.endIndex
        defer { rest = rest[end...] }
        return Substring(rest[..<end])
    }

    mutating func skipSpaces() {
        rest = rest.drop { $0 == .space }
    }

    /// Removes the spaces at both ends.
    mutating func trimSpaces() {
        skipSpaces()
        while rest.last == .space { rest.removeLast() }
    }
}

extension UInt8 {
    static var space: UInt8 { 0x20 }
    static var comma: UInt8 { 0x2C }
    static var slash: UInt8 { 0x2F }
    static var colon: UInt8 { 0x3A }
    static var semicolon: UInt8 { 0x3B }
    static var equals: UInt8 { 0x3D }
    static var tilde: UInt8 { 0x7E }

    /// Whether a token of RFC 8866 §9 may contain it: a mid, an encoding name, an attribute name.
    var isTokenCharacter: Bool {
        switch self {
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x30...0x39, 0x41...0x5A, 0x5E...0x7E: true
        default: false
        }
    }
}

extension FixedWidthInteger {
    /// Parses plain decimal digits: no sign, no space, no overflow.
    init?(digits: Substring) {
        guard !digits.isEmpty else { return nil }
        var value: Self = 0
        for byte in digits.utf8 {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (shifted, hasOverflowed) = value.multipliedReportingOverflow(by: 10)
            let (sum, hasCarried) = shifted.addingReportingOverflow(Self(truncatingIfNeeded: byte &- 0x30))
            guard !hasOverflowed, !hasCarried else { return nil }
            value = sum
        }
        self = value
    }
}

extension Substring {
    /// The parts between separators, including empty ones.
    func parts(separatedBy separator: UInt8) -> [Substring] {
        utf8.split(separator: separator, omittingEmptySubsequences: false).map { Substring($0) }
    }
}

extension String {
    /// Whether this is a token as defined in RFC 8866 §9, with 1 to `limit` bytes.
    package func isSDPToken(limit: Int = 255) -> Bool {
        let bytes = utf8
        return !bytes.isEmpty && bytes.count <= limit && bytes.allSatisfy(\.isTokenCharacter)
    }

    /// Whether both are equal except for the case of ASCII letters, as codec and algorithm names are compared.
    package func matchesIgnoringCase(_ other: String) -> Bool {
        let (left, right) = (utf8, other.utf8)
        guard left.count == right.count else { return false }
        return zip(left, right).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension UInt8 {
    var asciiLowercased: UInt8 {
        (0x41...0x5A).contains(self) ? self | 0x20 : self
    }
}
