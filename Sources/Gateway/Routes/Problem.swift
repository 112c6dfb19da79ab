import Base
import HTTP

/// An answer that says what is wrong, for people and for machines.
/// - Source: RFC 9457.
package struct Problem: Error, Sendable {
    /// 400 to 599.
    package let status: Int
    /// A sentence for people: what is wrong, and what would be right.
    package var detail: String
    /// Names the kind of problem, as the last part of its type.
    package let kind: String
    /// Such as `Retry-After`.
    package var headers: HTTPHeaders
    /// Further members of the JSON object.
    var members: [String: JSON] = [:]
    /// Of a 429: how much is allowed, where that is one number.
    var quota: RateLimit.Quota?

    /// - Parameter kind: nil for what is usual with the status.
    package init(_ status: Int, _ kind: String? = nil, _ detail: String, headers: HTTPHeaders = HTTPHeaders())
    {
        self.status = status
        self.kind = kind ?? Self.usualKind(status)
        self.detail = detail
        self.headers = headers
    }

    /// So that a program can tell each refusal apart.
    private static func usualKind(_ status: Int) -> String {
        switch status {
        case 400: "malformed-request"
        case 401: "token-missing"
        case 403: "not-allowed"
        case 404: "nothing-there"
        case 405: "unknown-method"
        case 406: "not-acceptable"
        case 408: "too-slow"
        case 409: "conflict"
        case 411: "length-missing"
        case 412: "stale-tag"
        case 413: "too-large"
        case 415: "wrong-type"
        case 416: "no-such-range"
        case 422: "invalid-field"
        case 426: "websocket-only"
        case 428: "tag-missing"
        case 429: "too-many-requests"
        case 431: "header-too-large"
        case 501: "unknown-method"
        case 503: "unavailable"
        default: "error"
        }
    }

    /// Seconds until it is worth asking again, where nobody knows better.
    private static let usualDelay = 5

    /// `application/problem+json`; one that will pass says when to ask again.
    package var response: HTTPResponse {
        var object = members
        object["type"] = .string("urn:rostrum:problem:\(kind)")
        object["rule"] = .string(kind)
        object["title"] = .string(HTTPResponse.reasonPhrase(status))
        object["detail"] = .string(detail)
        object["status"] = .integer(status)
        var response = HTTPResponse(status: status, headers: headers)
        response.headers.set("Content-Type", "application/problem+json")
        if headers["cache-control"] == nil { response.headers.set("Cache-Control", "no-store") }
        let wait = headers["retry-after"].flatMap { Int($0) } ?? Self.usualDelay
        switch status {
        case 429: response.headers.set(RateLimit(kind, wait: wait, quota: quota).headers)
        case 503: response.headers.set("Retry-After", "\(wait)")
        default: break
        }
        response.body = JSON.object(object).bytes
        return response
    }
}

extension HTTPResponse {
    static func json(_ status: Int, _ value: JSON) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Content-Type": "application/json"], body: value.bytes)
    }
}
