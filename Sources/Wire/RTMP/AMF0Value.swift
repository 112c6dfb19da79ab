/// A value of Action Message Format 0, of which RTMP's commands and a stream's metadata consist.
///
/// ECMA arrays and typed objects are read as objects, long strings and XML as strings. References and the additions
/// of AMF 3 are refused: publishers do not send them.
/// - Source: Adobe, Action Message Format 0 (2007), §2.
package indirect enum AMF0Value: Equatable, Sendable {
    case number(Double)
    case boolean(Bool)
    case string(String)
    case object([Member])
    case array([AMF0Value])
    /// In milliseconds since 1970.
    case date(Double)
    case null
    case undefined

    /// One property of an object.
    package struct Member: Equatable, Sendable {
        package let name: String
        package let value: AMF0Value

        package init(_ name: String, _ value: AMF0Value) {
            self.name = name
            self.value = value
        }
    }

    fileprivate enum Marker {
        static let number: UInt8 = 0x00
        static let boolean: UInt8 = 0x01
        static let string: UInt8 = 0x02
        static let object: UInt8 = 0x03
        static let null: UInt8 = 0x05
        static let undefined: UInt8 = 0x06
        static let ecmaArray: UInt8 = 0x08
        static let objectEnd: UInt8 = 0x09
        static let strictArray: UInt8 = 0x0A
        static let date: UInt8 = 0x0B
        static let longString: UInt8 = 0x0C
        static let xml: UInt8 = 0x0F
        static let typedObject: UInt8 = 0x10
    }

    /// How deep objects and arrays may be nested.
    package static let depthLimit = 8
    /// Most values in one message, including nested ones.
    package static let countLimit = 512
    /// Longest string in bytes; a stream key may contain a token.
    package static let stringLimit = 8_192

    /// Parses the consecutive values of a message.
    package static func sequence(parsing bytes: Span<UInt8>) throws(WireError) -> [AMF0Value] {
        var reader = AMF0Reader()
        var values: [AMF0Value] = []
        while reader.offset < bytes.count { values.append(try reader.value(in: bytes, depth: 0)) }
        return values
    }

    /// The value of an object's property; the first one of a repeated name.
    package subscript(name name: String) -> AMF0Value? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The text of a string; nil for other values.
    package var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number; nil for other values.
    package var number: Double? {
        if case .number(let number) = self { number } else { nil }
    }

    /// Appends the encoded value; strings and objects beyond the limits can be written but not read.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .number(let value):
            bytes.append(Marker.number)
            bytes.append(bigEndian: value.bitPattern)
        case .boolean(let value): bytes += [Marker.boolean, value ? 1 : 0]
        case .string(let text): Self.append(text, to: &bytes)
        case .object(let members):
            bytes.append(Marker.object)
            for member in members {
                let name = Array(member.name.utf8.prefix(Int(UInt16.max)))
                bytes.append(bigEndian: UInt16(truncatingIfNeeded: name.count))
                bytes += name
                member.value.append(to: &bytes)
            }
            bytes += [0, 0, Marker.objectEnd]
        case .array(let values):
            bytes.append(Marker.strictArray)
            bytes.append(bigEndian: UInt32(truncatingIfNeeded: values.count))
            for value in values { value.append(to: &bytes) }
        case .date(let milliseconds):
            bytes.append(Marker.date)
            bytes.append(bigEndian: milliseconds.bitPattern)
            // The time zone, which is reserved and 0.
            bytes.append(bigEndian: UInt16(0))
        case .null: bytes.append(Marker.null)
        case .undefined: bytes.append(Marker.undefined)
        }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        let utf8 = Array(text.utf8)
        if let length = UInt16(exactly: utf8.count) {
            bytes.append(Marker.string)
            bytes.append(bigEndian: length)
        } else {
            bytes.append(Marker.longString)
            bytes.append(bigEndian: UInt32(truncatingIfNeeded: utf8.count))
        }
        bytes += utf8
    }
}

/// The reading position in a message, and how many more values are allowed.
private struct AMF0Reader {
    private(set) var offset = 0
    private var rest = AMF0Value.countLimit

    private typealias Marker = AMF0Value.Marker

    mutating func value(in bytes: Span<UInt8>, depth: Int) throws(WireError) -> AMF0Value {
        guard rest > 0, depth <= AMF0Value.depthLimit else { throw .invalid(.amfNesting) }
        rest -= 1
        let marker = try bytes.uint8(at: offset)
        offset += 1
        switch marker {
        case Marker.number: return .number(try number(in: bytes))
        case Marker.boolean:
            let flag = try bytes.uint8(at: offset)
            offset += 1
            return .boolean(flag != 0)
        case Marker.string: return .string(try shortText(in: bytes))
        case Marker.longString, Marker.xml:
            let length = try bytes.uint32(at: offset)
            offset += 4
            return .string(try text(Int(length), in: bytes))
        case Marker.object: return .object(try members(in: bytes, depth: depth))
        case Marker.ecmaArray:
            // The number of members is only a hint: some writers leave it 0.
            _ = try bytes.uint32(at: offset)
            offset += 4
            return .object(try members(in: bytes, depth: depth))
        case Marker.typedObject:
            _ = try shortText(in: bytes)
            return .object(try members(in: bytes, depth: depth))
        case Marker.strictArray: return .array(try elements(in: bytes, depth: depth))
        case Marker.date:
            let milliseconds = try number(in: bytes)
            _ = try bytes.uint16(at: offset)
            offset += 2
            return .date(milliseconds)
        case Marker.null: return .null
        case Marker.undefined: return .undefined
        default: throw .invalid(.amfMarker)
        }
    }

    private mutating func number(in bytes: Span<UInt8>) throws(WireError) -> Double {
        let bits = try bytes.uint64(at: offset)
        offset += 8
        return Double(bitPattern: bits)
    }

    private mutating func shortText(in bytes: Span<UInt8>) throws(WireError) -> String {
        let length = try bytes.uint16(at: offset)
        offset += 2
        return try text(Int(length), in: bytes)
    }

    private mutating func text(_ length: Int, in bytes: Span<UInt8>) throws(WireError) -> String {
        guard length <= AMF0Value.stringLimit else { throw .invalid(.amfString) }
        let raw = try bytes.bytes(offset..<(offset + length))
        guard let text = String(validating: raw, as: UTF8.self) else { throw .invalid(.amfString) }
        offset += length
        return text
    }

    private mutating func members(
        in bytes: Span<UInt8>, depth: Int
    ) throws(WireError) -> [AMF0Value.Member] {
        var members: [AMF0Value.Member] = []
        while true {
            let name = try shortText(in: bytes)
            if name.isEmpty, try bytes.uint8(at: offset) == Marker.objectEnd {
                offset += 1
                return members
            }
            members.append(AMF0Value.Member(name, try value(in: bytes, depth: depth + 1)))
        }
    }

    private mutating func elements(in bytes: Span<UInt8>, depth: Int) throws(WireError) -> [AMF0Value] {
        let count = try bytes.uint32(at: offset)
        offset += 4
        guard Int(count) <= rest else { throw .invalid(.amfNesting) }
        var elements: [AMF0Value] = []
        for _ in 0..<count { elements.append(try value(in: bytes, depth: depth + 1)) }
        return elements
    }
}

extension WireError.Field {
    /// A type of value that is not supported.
    package static var amfMarker: Self { .init("amf.marker") }
    /// Values nested too deep, or too many of them.
    package static var amfNesting: Self { .init("amf.nesting") }
    /// A string that is too long, or not UTF-8.
    package static var amfString: Self { .init("amf.string") }
}
