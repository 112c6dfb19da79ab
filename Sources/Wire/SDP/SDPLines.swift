/// The lines of a description, validated in form but not in content.
struct SDPLines {
    struct Line: Equatable {
        var letter: UInt8
        var value: String
    }

    private(set) var lines: [Line] = []
    private var position = 0

    /// Splits `bytes` at LF, with or without a CR before it.
    ///
    /// Safari sends both kinds in one offer. Blank lines are skipped.
    init(_ bytes: Span<UInt8>, upTo length: Int = SessionDescription.maximumLength) throws(WireError) {
        guard bytes.count <= length else { throw .invalid(.sdpLength) }
        var start = 0
        var count = 0
        while start < bytes.count {
            var end = start
            while end < bytes.count, bytes[end] != 0x0A { end &+= 1 }
            count &+= 1
            guard count <= SessionDescription.maximumLineCount else { throw .invalid(.sdpLineCount) }
            let next = end &+ 1
            if end > start, bytes[end &- 1] == 0x0D { end &-= 1 }
            if end > start { lines.append(try Self.line(bytes, start..<end)) }
            start = next
        }
    }

    private static func line(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(WireError) -> Line {
        let letter = try bytes.uint8(at: range.lowerBound)
        guard range.count >= 2, (0x61...0x7A).contains(letter),
            try bytes.uint8(at: range.lowerBound &+ 1) == .equals
        else { throw .invalid(.sdpLine) }
        let value = range.dropFirst(2)
        // A stray CR or NUL would let one value become two lines in what we send on.
        for index in value {
            let byte = try bytes.uint8(at: index)
            guard byte != 0, byte != 0x0D else { throw .invalid(.sdpLine) }
        }
        guard let text = try? UTF8Span(validating: bytes.extracting(value)) else { throw .invalid(.sdpText) }
        return Line(letter: letter, value: String(copying: text))
    }

    /// Removes the next line if it begins with this letter, and returns its value; nil otherwise.
    mutating func take(_ letter: Character) -> String? {
        guard let line = peek(), line.letter == letter.asciiValue else { return nil }
        position &+= 1
        return line.value
    }

    /// Removes and returns the next line; nil at the end.
    mutating func take() -> Line? {
        guard let line = peek() else { return nil }
        position &+= 1
        return line
    }

    func peek() -> Line? {
        position < lines.count ? lines[position] : nil
    }

    /// Removes the lines before the next `m=` or the end, as fields and attributes.
    mutating func takeSection() throws(WireError) -> (fields: [SDPField], attributes: [SDPAttribute]) {
        var fields: [SDPField] = []
        var attributes: [SDPAttribute] = []
        while let line = peek(), line.letter != UInt8(ascii: "m") {
            position &+= 1
            switch line.letter {
            case UInt8(ascii: "a"): attributes.append(try Self.attribute(line.value))
            case UInt8(ascii: "v"), UInt8(ascii: "o"), UInt8(ascii: "s"): throw .invalid(.sdpLine)
            default: fields.append(SDPField(line.letter, line.value))
            }
        }
        return (fields, attributes)
    }

    /// Removes all m-lines to the end, with the lines that belong to them.
    mutating func takeMedia() throws(WireError) -> [MediaDescription] {
        var media: [MediaDescription] = []
        while let line = take("m") {
            guard media.count < SessionDescription.maximumMediaCount else { throw .invalid(.sdpMediaCount) }
            var description = try MediaDescription(parsing: line)
            (description.fields, description.attributes) = try takeSection()
            media.append(description)
        }
        return media
    }

    private static func attribute(_ text: String) throws(WireError) -> SDPAttribute {
        var scanner = SDPScanner(text)
        let hasValue = text.utf8.contains(.colon)
        let name = String(scanner.take(until: .colon))
        guard name.isSDPToken() else { throw .invalid(.sdpAttribute) }
        return SDPAttribute(.init(name), hasValue ? scanner.remainder : nil)
    }
}

extension WireError.Field {
    /// Longer than `SessionDescription.maximumLength`, or than a fragment may be.
    package static var sdpLength: Self { .init("sdp.length") }
    /// More lines than `SessionDescription.maximumLineCount`.
    package static var sdpLineCount: Self { .init("sdp.lines") }
    /// More m-lines than `SessionDescription.maximumMediaCount`.
    package static var sdpMediaCount: Self { .init("sdp.media.count") }
    /// Not `LETTER=VALUE`, or a line in the wrong place.
    package static var sdpLine: Self { .init("sdp.line") }
    /// Not UTF-8.
    package static var sdpText: Self { .init("sdp.text") }
    /// An attribute name that is not a token (RFC 8866 §9).
    package static var sdpAttribute: Self { .init("sdp.attribute") }
    /// The first line is not `v=0`.
    package static var sdpVersion: Self { .init("sdp.version") }
    /// The second line is not a valid `o=`.
    package static var sdpOrigin: Self { .init("sdp.origin") }
    /// An m-line without a valid media type, port, transport or format.
    package static var sdpMedia: Self { .init("sdp.media") }
}
