import Base
import HTTP

/// An error response for people and programs: a problem document.
/// - Source: RFC 9457 §3.1 (members), §3.2 (extension members), §6.1 (media type).
package struct Problem: Error, Sendable {
    /// 400 to 599.
    package let status: Int
    /// A sentence for people: what is wrong, and what would be valid.
    package var detail: String
    /// The kind of problem: the last part of `type`, and the member `rule`, for programs to compare.
    package let kind: String
    /// Further header fields of the response, such as `Retry-After`.
    package var headers: HTTPHeaders
    /// Extension members of the JSON object, such as `field`.
    var members: [String: JSON] = [:]
    /// For a 429: what is allowed, if it is the same for all clients.
    var quota: RateLimit.Quota?

    /// - Parameter kind: nil for the status's usual kind.
    package init(_ status: Int, _ kind: String? = nil, _ detail: String, headers: HTTPHeaders = HTTPHeaders())
    {
        self.status = status
        self.kind = kind ?? Self.usualKind(status)
        self.detail = detail
        self.headers = headers
    }

    /// The kind for a status without a more specific one.
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

    /// Default of `Retry-After` for 429 and 503, in seconds.
    private static let usualDelay = 5

    /// The response, as `application/problem+json`; a 429 or 503 has `Retry-After`.
    package var response: HTTPResponse {
        var object = members
        // A URN, because the type identifies the problem and need not lead anywhere (RFC 9457 §3.1.1).
        object["type"] = .string("urn:rostrum:problem:\(kind)")
        object["rule"] = .string(kind)
        object["title"] = .string(HTTPResponse.reasonPhrase(status))
        object["detail"] = .string(detail)
        object["status"] = .integer(status)
        var response = HTTPResponse(status: status, headers: headers)
        response.headers.set("Content-Type", "application/problem+json")
        // Some errors are cacheable by default, such as 404, 405, 410 and 501 (RFC 9110 §15.1).
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
    /// A response with a JSON body.
    static func json(_ status: Int, _ value: JSON) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Content-Type": "application/json"], body: value.bytes)
    }
}
