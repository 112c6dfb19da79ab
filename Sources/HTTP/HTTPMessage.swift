import Base

/// The methods that a handler gets; the server refuses every other.
package enum HTTPMethod: String, CaseIterable, Sendable {
    case get = "GET"
    case head = "HEAD"
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
    case options = "OPTIONS"
}

/// Header fields in the order they came; names compare without regard to case.
/// - Source: RFC 9110 §5.
package struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// One line of a head.
    package struct Field: Sendable, Equatable {
        /// In lower case.
        package let name: String
        /// Without blanks around it.
        package let value: String
    }

    /// In order; a name may come several times.
    package private(set) var fields: [Field] = []

    package init() {}

    package init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// The first field of that name.
    package subscript(_ name: String) -> String? {
        let name = name.lowercased()
        return fields.first { $0.name == name }?.value
    }

    /// Appends a field, whether there is one of that name or not.
    package mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name: name.lowercased(), value: value))
    }

    /// Replaces all fields of that name by one.
    package mutating func set(_ name: String, _ value: String) {
        let lowered = name.lowercased()
        fields.removeAll { $0.name == lowered }
        add(name, value)
    }

    /// Replaces the fields of each name that others have by those.
    package mutating func set(_ others: HTTPHeaders) {
        for field in others.fields { set(field.name, field.value) }
    }
}

/// One request, complete and within the server's limits.
package struct HTTPRequest: Sendable {
    /// One `name=value` of a query.
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

    /// HEAD is answered like GET, without the body.
    package var method: HTTPMethod
    /// Starts with a slash, percent-decoded, without `.` and `..` segments.
    package var path: String
    /// In order; a name may come several times.
    package var query: [QueryItem]
    /// Names in lower case.
    package var headers: HTTPHeaders
    /// Whole, and within `maximumBodyBytes`.
    package var body: [UInt8]
    /// The other end of the TCP connection.
    package var remoteAddress: TransportAddress
    /// Whether the client's connection is encrypted, to us or to a trusted proxy.
    package var isSecure: Bool
    /// Who asks: the other end, or whom a trusted proxy names.
    package var clientAddress: IPAddress
    /// Whether the other end is a trusted proxy, or asks as some proxy would.
    package var isByProxy = false
    /// What a trusted proxy says that the client called us by.
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

    /// Whether somebody else may have asked than who has the connection.
    package var isForwarded: Bool { isByProxy || headers.isForwarded }

    /// The value of the first query item of that name.
    package func query(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// Path and query for a log line; a token is never part of it.
    ///
    /// A component of the path that looks like a JSON Web Token is taken for one: three parts with dots between them
    /// (RFC 7515, section 7.1), of which the first begins with `e`, as `{` does in base64url.
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
    /// What the client calls this server, such as `https://example.org`; nil where it does not say.
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

/// One answer.
package struct HTTPResponse: Sendable, Equatable {
    /// 200 to 599.
    package var status: Int
    /// Without `Content-Length` and `Date`, which the server adds.
    package var headers: HTTPHeaders
    /// Left out of answers to HEAD.
    package var body: [UInt8]
    /// What is sent instead of the body.
    package var file: HTTPFile?
    /// What is sent instead of the body, as it is made.
    package var stream: HTTPStream?

    package init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A line of plain text.
    package static func text(_ status: Int, _ line: String) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["Content-Type": "text/plain; charset=utf-8"],
            body: Array((line + "\n").utf8))
    }
}

extension HTTPResponse {
    /// What stands behind a status in the first line of an answer.
    /// - Source: RFC 9110 §15, RFC 6585 (428, 429, 431).
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
