import Foundation

/// A JSON value as the server sent it, including members that this version does not use.
enum JSONValue: Equatable, Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Deeper documents are refused: the server sends none, and decoding them recursively could exhaust the stack.
    private static let maximumDepth = 32

    /// - Throws: if the data is not JSON, or nested too deeply.
    init(parsing data: Data) throws(RostrumError) {
        guard Self.isShallow(data), let value = try? JSONDecoder().decode(JSONValue.self, from: data) else {
            throw .unusable("no JSON of Rostrum's: \(String(decoding: data.prefix(80), as: UTF8.self))")
        }
        self = value
    }

    /// Checks the nesting before the decoder runs, by counting brackets outside strings.
    private static func isShallow(_ data: Data) -> Bool {
        var (depth, isString, isEscaped) = (0, false, false)
        for byte in data {
            if isEscaped {
                isEscaped = false
            } else if isString {
                if byte == UInt8(ascii: "\\") { isEscaped = true }
                if byte == UInt8(ascii: "\"") { isString = false }
            } else if byte == UInt8(ascii: "\"") {
                isString = true
            } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                depth += 1
                guard depth <= maximumDepth else { return false }
            } else if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") {
                depth -= 1
            }
        }
        return true
    }

    /// A member of an object; null if there is none of that name, or if this is no object.
    subscript(name: String) -> JSONValue {
        guard case .object(let members) = self else { return .null }
        return members[name] ?? .null
    }

    var string: String? { if case .string(let text) = self { text } else { nil } }
    var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    var members: [String: JSONValue] { if case .object(let members) = self { members } else { [:] } }
    var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }

    /// A number without its fraction; nil if this is no number, or one too large for an integer.
    var integer: Int? {
        guard case .number(let value) = self else { return nil }
        return Int(exactly: value.rounded(.towardZero))
    }

    /// A time in ISO 8601 with or without fractions of a second.
    var date: Date? {
        guard let text = string else { return nil }
        return (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
            ?? (try? Date.ISO8601FormatStyle().parse(text))
    }

    /// Applies a JSON merge patch: objects merge, null deletes, anything else replaces.
    /// - Source: RFC 7396 §2.
    mutating func merge(_ patch: JSONValue) {
        guard case .object(let changes) = patch else {
            self = patch
            return
        }
        var members = members
        // The old value is released first, so that the dictionary is changed in place and not copied.
        self = .null
        for (name, change) in changes {
            if change == .null {
                members[name] = nil
            } else {
                members[name, default: .null].merge(change)
            }
        }
        self = .object(members)
    }
}

extension JSONValue: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self = .string(text)
        } else if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let members = try? container.decode([String: JSONValue].self) {
            self = .object(members)
        } else {
            self = .array(try container.decode([JSONValue].self))
        }
    }
}
