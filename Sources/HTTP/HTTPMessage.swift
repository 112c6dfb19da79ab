import Base

/// The methods that reach a handler; the server itself refuses all others.
package enum HTTPMethod: String, CaseIterable, Sendable {
    case get = "GET"
    case head = "HEAD"
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
    case options = "OPTIONS"
}

/// Header fields in order of arrival; names are compared without regard to case.
/// - Source: RFC 9110 §5.
package struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// One line of a head.
    package struct Field: Sendable, Equatable {
        /// In lower case, as names do not distinguish case (RFC 9110 §5.1).
        package let name: String
        /// Without surrounding blanks (RFC 9110 §5.5).
        package let value: String
    }

    /// In order; a name may come several times.
    package private(set) var fields: [Field] = []

    package init() {}

    package init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// The value of the first field of that name; nil if there is none.
    package subscript(_ name: String) -> String? {
        let name = name.lowercased()
        return fields.first { $0.name == name }?.value
    }

    /// Appends a field, even if there is one of that name already.
    package mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name: name.lowercased(), value: value))
    }

    /// Replaces all fields of that name with one.
    package mutating func set(_ name: String, _ value: String) {
        let lowered = name.lowercased()
        fields.removeAll { $0.name == lowered }
        add(name, value)
    }

    /// Replaces fields, for each name in `others`; of a name that occurs twice there, the last one remains.
    package mutating func set(_ others: HTTPHeaders) {
        for field in others.fields { set(field.name, field.value) }
    }
}

/// One complete request, within the server's limits.
package struct HTTPRequest: Sendable {
    /// One `name=value` pair of a query.
    package struct QueryItem: Sendable, Equatable {
        /// Percent-decoded.
        package let name: String
        /// Empty for `?name` and for `?name=`.
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A handler answers HEAD like GET; the server leaves out the body (RFC 9110 §9.3.2).
    package var method: HTTPMethod
    /// Begins with a slash; percent-decoded, with `.` and `..` segments resolved.
    package var path: String
    /// In order; a name may come several times.
    package var query: [QueryItem]
    /// Only the fields that libwebsockets knows, `Idempotency-Key` and those of proxies; see `RequestHead`.
    package var headers: HTTPHeaders
    /// Complete and decoded, at most `maximumBodyBytes`; empty if there is none.
    package var body: [UInt8]
    /// Peer of the TCP connection, which may be a proxy.
    package var remoteAddress: TransportAddress
    /// Whether the client's connection is encrypted, to this server or to a trusted proxy.
    package var isSecure: Bool
    /// The client: the connection's peer, or the address that a trusted proxy names.
    package var clientAddress: IPAddress
    /// Whether the peer is a trusted proxy, or speaks HTTP/1.0 as many proxies do.
    package var isByProxy = false
    /// The host by which the client addressed the server, according to a trusted proxy; otherwise nil.
    package var publicHost: String?

    package init(
        method: HTTPMethod, path: String, query: [QueryItem] = [], headers: HTTPHeaders = HTTPHeaders(),
        body: [UInt8] = [], remoteAddress: TransportAddress = TransportAddress(ip: .loopback, port: 0),
        isSecure: Bool = false
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.remoteAddress = remoteAddress
        clientAddress = remoteAddress.ip
        self.isSecure = isSecure
    }

    /// Whether the client may be another host than the connection's peer.
    package var isForwarded: Bool { isByProxy || headers.isForwarded }

    /// The value of the first query item of that name; nil if there is none.
    package func query(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// Path and query for a log line, with tokens replaced.
    ///
    /// A path component counts as a JSON Web Token if it has three parts separated by dots (RFC 7515, section 7.1) and
    /// begins with `e`, as `{` does in base64url.
    package var loggedTarget: String {
        var text = path.split(separator: "/", omittingEmptySubsequences: false)
            .map { $0.hasPrefix("e") && $0.count(where: { $0 == "." }) == 2 ? "<secret>" : $0 }
            .joined(separator: "/")
        for (index, item) in query.enumerated() {
            let value = item.name == "access_token" ? "<secret>" : item.value
            text += "\(index == 0 ? "?" : "&")\(item.name)=\(value)"
        }
        return text
    }
}

extension HTTPRequest {
    /// The server's origin as the client addresses it, such as `https://example.org`; nil if unknown or malformed.
    ///
    /// `Host` comes from the client: only characters of a host and port pass, so that it is safe to repeat in answers.
    package var origin: String? {
        guard let host = publicHost ?? headers["host"], (1...255).contains(host.utf8.count),
            host.utf8.allSatisfy({ byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "."), UInt8(ascii: "-"),
                    UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"):
                    true
                default: false
                }
            })
        else { return nil }
        return "\(isSecure ? "https" : "http")://\(host)"
    }
}

/// One response.
package struct HTTPResponse: Sendable, Equatable {
    /// 200 to 599.
    package var status: Int
    /// Without `Content-Length`, `Date`, `Connection` and `Transfer-Encoding`, which the server adds.
    package var headers: HTTPHeaders
    /// Left out of responses to HEAD.
    package var body: [UInt8]
    /// Sent in place of `body`, if set.
    package var file: HTTPFile?
    /// Sent in place of `body` while it is produced, if set; takes precedence over `file`.
    package var stream: HTTPStream?

    package init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A response with one line of plain text.
    package static func text(_ status: Int, _ line: String) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["Content-Type": "text/plain; charset=utf-8"],
            body: Array((line + "\n").utf8))
    }
}

extension HTTPResponse {
    /// Whether the status rules a body out: the client would take its bytes for the next response.
    /// - Source: RFC 9112 §6.3; RFC 9110 §15.3.5 (204), §15.4.5 (304).
    var hasNoBody: Bool { status == 204 || status == 304 || status < 200 }

    /// The same without a body, where the status rules that out.
    var withoutForbiddenBody: HTTPResponse {
        guard hasNoBody else { return self }
        return HTTPResponse(status: status, headers: headers)
    }

    /// The reason phrase of a status line, which clients ignore (RFC 9112 §4) but people read.
    /// - Source: RFC 9110 §15, RFC 6585 (428, 429, 431), RFC 4918 (507).
    package static func reasonPhrase(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 206: "Partial Content"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 507: "Insufficient Storage"
        default: "Status \(status)"
        }
    }
}
