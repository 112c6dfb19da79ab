import HTTP
@testable import Gateway

extension HTTPRequest {
    /// A request as it would come over the wire, without the wire.
    /// - Parameter target: a path, and perhaps a query, in which nothing is escaped.
    static func made(
        _ method: HTTPMethod, _ target: String, token: String?, _ headers: HTTPHeaders, body: String
    ) -> HTTPRequest {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var request = HTTPRequest(method: method, path: String(parts[0]), body: Array(body.utf8))
        if parts.count > 1 {
            request.query = parts[1].split(separator: "&").map { pair in
                let pair = pair.split(separator: "=", maxSplits: 1)
                return HTTPRequest.QueryItem(
                    name: String(pair[0]), value: pair.count > 1 ? String(pair[1]) : "")
            }
        }
        request.headers = headers
        if let token { request.headers.add("Authorization", "Bearer \(token)") }
        return request
    }
}
