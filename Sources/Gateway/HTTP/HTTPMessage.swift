import Base

/// The methods the gateway understands; anything else is refused before it gets here.
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
    package struct Field: Sendable, Equatable {
        /// In lower case.
        package let name: String
        package let value: String
    }

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

    package mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name: name.lowercased(), value: value))
    }

    /// Replaces all fields of that name by one.
    package mutating func set(_ name: String, _ value: String) {
        let lowered = name.lowercased()
        fields.removeAll { $0.name == lowered }
        add(name, value)
    }
}

/// One request, complete and within the server's limits.
package struct HTTPRequest: Sendable {
    package struct QueryItem: Sendable, Equatable {
        package let name: String
        /// Empty for `?name` and for `?name=`.
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package var method: HTTPMethod
    /// Starts with a slash, percent-decoded, without `.` and `..` segments.
    package var path: String
    package var query: [QueryItem]
    package var headers: HTTPHeaders
    package var body: [UInt8]
    /// The other end of the TCP connection.
    package var remoteAddress: TransportAddress
    /// Whether the client's connection is encrypted, to us or to a trusted proxy.
    package var isSecure: Bool
    /// Who asks: the other end, or whom a trusted proxy names.
    package var clientAddress: IPAddress
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

    /// The value of the first query item of that name.
    package func query(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// Path and query for a log line; a token is never part of it.
    package var loggedTarget: String {
        var text = path
        for (index, item) in query.enumerated() {
            let value = item.name == "access_token" ? "<secret>" : item.value
            text += "\(index == 0 ? "?" : "&")\(item.name)=\(value)"
        }
        return text
    }
}

/// One answer.
package struct HTTPResponse: Sendable, Equatable {
    package var status: Int
    package var headers: HTTPHeaders
    package var body: [UInt8]
    /// What is sent instead of the body.
    package var file: HTTPFile?

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
    /// - Source: RFC 9110 §15, RFC 6585 (428, 429, 431).
    static func reasonPhrase(_ status: Int) -> String {
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
