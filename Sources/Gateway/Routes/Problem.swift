import Base

/// An answer that says what is wrong, for people and for machines.
/// - Source: RFC 9457.
package struct Problem: Error, Sendable {
    package let status: Int
    package let detail: String
    /// Names the kind of problem, as the last part of its type.
    package let kind: String
    package var headers: HTTPHeaders
    /// Further members of the JSON object.
    var members: [String: JSON] = [:]

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
        object["type"] = .string(kind.isEmpty ? "about:blank" : "urn:rostrum:problem:\(kind)")
        object["title"] = .string(HTTPResponse.reasonPhrase(status))
        object["detail"] = .string(detail)
        object["status"] = .integer(status)
        var response = HTTPResponse(status: status, headers: headers)
        response.headers.set("Content-Type", "application/problem+json")
        response.headers.set("Cache-Control", "no-store")
        response.body = JSON.object(object).bytes
        return response
    }
}

extension HTTPResponse {
    static func json(_ status: Int, _ value: JSON) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Content-Type": "application/json"], body: value.bytes)
    }
}
