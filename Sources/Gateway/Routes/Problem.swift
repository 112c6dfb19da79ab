import Base
import Foundation

/// An answer that says what is wrong, for people and for machines.
/// - Source: RFC 9457.
package struct Problem: Error, Sendable {
    package let status: Int
    package let detail: String
    /// Names the kind of problem, as the last part of its type.
    package let kind: String
    package var headers: HTTPHeaders
    /// Further members of the JSON object.
    package var members: [String: String] = [:]

    /// - Parameter kind: nil where the status says it all (`about:blank`).
    package init(_ status: Int, _ kind: String? = nil, _ detail: String, headers: HTTPHeaders = HTTPHeaders())
    {
        self.status = status
        self.kind = kind ?? ""
        self.detail = detail
        self.headers = headers
    }

    package var response: HTTPResponse {
        var object = members
        object["type"] = kind.isEmpty ? "about:blank" : "urn:rostrum:problem:\(kind)"
        object["title"] = HTTPResponse.reasonPhrase(status)
        object["detail"] = detail
        var response = HTTPResponse(status: status, headers: headers)
        response.headers.set("Content-Type", "application/problem+json")
        response.headers.set("Cache-Control", "no-store")
        var json = JSON.object(object.mapValues { .string($0) })
        json["status"] = .number(Double(status))
        response.body = json.bytes
        return response
    }
}

/// A JSON value to be sent.
enum JSON: Sendable, Equatable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    subscript(_ key: String) -> JSON? {
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

    /// Members are sorted, so that equal values have equal bytes.
    var bytes: [UInt8] {
        let options: JSONSerialization.WritingOptions = [
            .sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed,
        ]
        guard let data = try? JSONSerialization.data(withJSONObject: foundation, options: options) else {
            assertionFailure("strings and finite numbers can always be written")
            return Array("{}".utf8)
        }
        return Array(data)
    }

    private var foundation: Any {
        switch self {
        case .null: NSNull()
        case .bool(let value): value
        case .number(let value): value == value.rounded() && abs(value) < 1e15 ? Int(value) as Any : value
        case .string(let value): value
        case .array(let values): values.map(\.foundation)
        case .object(let members): members.mapValues(\.foundation)
        }
    }
}

extension HTTPResponse {
    static func json(_ status: Int, _ value: JSON) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Content-Type": "application/json"], body: value.bytes)
    }
}
