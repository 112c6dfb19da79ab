/// A JSON value, for responses and messages, and for those parts of requests whose form is free.
/// - Source: RFC 8259.
package enum JSON: Sendable, Equatable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    /// A string, or `null` for nil.
    package static func text(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
    /// An integer; exact up to 2^53, beyond which many JSON parsers round as well (RFC 8259 §6).
    package static func integer(_ value: some BinaryInteger) -> JSON { .number(Double(value)) }
    /// A time as RFC 3339 text, or `null` for nil.
    package static func time(_ value: WallTime?) -> JSON { value.map { .string($0.text) } ?? .null }

    /// A member of an object.
    ///
    /// Reading gives nil if the member is absent or the value is not an object. Setting does nothing if it is not an
    /// object.
    package subscript(_ key: String) -> JSON? {
        get {
            if case .object(let members) = self { return members[key] }
            return nil
        }
        set {
            guard case .object(var members) = self else { return }
            members[key] = newValue
            self = .object(members)
        }
    }

    /// The encoded value; members are sorted, so that equal values have equal bytes.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    /// The encoded value as text.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    private func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .number(let value): Self.append(value, to: &bytes)
        case .string(let value): Self.append(value, to: &bytes)
        case .array(let values):
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                value.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.append(member.key, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    /// Appends a number; JSON has neither infinities nor NaN, for which this appends `null`.
    private static func append(_ value: Double, to bytes: inout [UInt8]) {
        guard value.isFinite else {
            bytes += "null".utf8
            return
        }
        let isWhole = value == value.rounded() && abs(value) < 1e15
        bytes += (isWhole ? "\(Int64(value))" : "\(value)").utf8
    }

    /// Appends a string in quotes, with the escapes that RFC 8259 §7 requires.
    private static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x0A: bytes += "\\n".utf8
            case 0..<0x20:
                let digits = String(byte, radix: 16)
                bytes += "\\u\(String(repeating: "0", count: 4 - digits.utf8.count))\(digits)".utf8
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}

extension JSON: Encodable {
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        // JSON has no infinities and no NaN.
        case .number(let value): value.isFinite ? try container.encode(value) : try container.encodeNil()
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let members): try container.encode(members)
        }
    }
}

extension JSON: Decodable {
    /// Decodes a part of what the server stored itself.
    ///
    /// Not for what strangers write, which may take minutes: each type that is tried in vain throws an error with the
    /// whole path to the value. `JSON(parsing:)` reads that.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let values = try? container.decode([JSON].self) {
            self = .array(values)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }
}
