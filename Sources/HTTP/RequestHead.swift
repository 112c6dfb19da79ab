import Base
import CWebSockets

/// A request line and header fields, read from libwebsockets and validated.
///
/// libwebsockets accepts more than RFC 9112 allows. Ambiguous framing, which a proxy in front may read differently, is
/// refused here, against request smuggling.
/// - Source: RFC 9112 §3 (request line), §6 (body), §11.2 (smuggling).
struct RequestHead {
    /// How the body's length is determined.
    enum Framing: Equatable {
        case none
        case length(Int)
        case chunked
    }

    let method: HTTPMethod
    let path: String
    let query: [HTTPRequest.QueryItem]
    let headers: HTTPHeaders
    /// `none` for a `Content-Length` of 0, too.
    let framing: Framing
    /// Whether the client waits for a 100 before it sends the body (RFC 9110 §10.1.1).
    let expectsContinue: Bool
    /// Whether the request is in HTTP/1.0.
    ///
    /// nginx uses that version for upstreams by default, and then adds no field that would name the client.
    let isOldHTTP: Bool
    /// Whether libwebsockets treats everything after the head as a body, so that it cannot find a next request.
    let libraryAwaitsMore: Bool

    /// A status and a sentence for the client.
    struct Refusal: Error {
        let status: Int
        let detail: String

        init(_ status: Int, _ detail: String) {
            self.status = status
            self.detail = detail
        }
    }

    /// Reads and validates a head; libwebsockets holds it only during its callback for a request or an upgrade.
    /// - Parameter maximumBytes: limit of path, query and fields together.
    /// - Throws: 400 for a malformed head, 411, 431 or 501.
    init(reading wsi: LibraryConnection, maximumBytes: Int) throws(Refusal) {
        (method, path) = try Self.target(wsi)
        query = Self.query(wsi)
        headers = Self.headers(wsi)
        let size =
            headers.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
            + query.reduce(path.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 2 }
        guard size <= maximumBytes else { throw Refusal(431, "The request's headers are too large.") }
        guard let version = wsi.text(WSI_TOKEN_HTTP), version.hasPrefix("HTTP/1.") else {
            throw Refusal(400, "The request line doesn't end in an HTTP version.")
        }
        isOldHTTP = version == "HTTP/1.0"
        // RFC 9112 §3.2: an HTTP/1.1 request without Host gets 400.
        guard headers["host"] != nil || isOldHTTP else {
            throw Refusal(400, "The request has no Host header.")
        }
        framing = try Self.framing(headers, method)
        expectsContinue = headers["expect"]?.lowercased() == "100-continue"
        libraryAwaitsMore =
            framing == .chunked
            || framing == .none && headers["content-length"] == nil && [.post, .put, .patch].contains(method)
    }

    /// The method and the decoded path; libwebsockets stores the target under a token of its method.
    private static func target(_ wsi: LibraryConnection) throws(Refusal) -> (HTTPMethod, String) {
        let found = methods.compactMap { method, token in wsi.text(token).map { (method, $0) } }
        // libwebsockets passes a zero byte (`%00`) in the middle of a path and drops one at its end.
        guard found.count == 1, let (method, path) = found.first, path.hasPrefix("/"), !path.utf8.contains(0)
        else {
            throw Refusal(400, "The request line is malformed.")
        }
        return (method, path)
    }

    private static let methods: [(HTTPMethod, lws_token_indexes)] = [
        (.get, WSI_TOKEN_GET_URI), (.head, WSI_TOKEN_HEAD_URI), (.post, WSI_TOKEN_POST_URI),
        (.put, WSI_TOKEN_PUT_URI), (.patch, WSI_TOKEN_PATCH_URI), (.delete, WSI_TOKEN_DELETE_URI),
        (.options, WSI_TOKEN_OPTIONS_URI),
    ]

    /// The query's items, percent-decoded; libwebsockets has split them at `&`.
    private static func query(_ wsi: LibraryConnection) -> [HTTPRequest.QueryItem] {
        let length = unsafe Int(lws_hdr_total_length(wsi.pointer, WSI_TOKEN_HTTP_URI_ARGS))
        guard length > 0 else { return [] }
        var items: [HTTPRequest.QueryItem] = []
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: length + 1) { buffer in
            // libwebsockets stores fewer than 128 fragments for all fields together.
            for index in 0..<CInt(128) {
                let count = unsafe lws_hdr_copy_fragment(
                    wsi.pointer, buffer.baseAddress, CInt(length + 1), WSI_TOKEN_HTTP_URI_ARGS, index)
                guard count >= 0 else { return }
                let pair = unsafe buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }
                guard !pair.isEmpty else { continue }
                let name = pair.prefix { $0 != UInt8(ascii: "=") }
                items.append(
                    HTTPRequest.QueryItem(
                        name: String(decoding: name, as: UTF8.self),
                        value: String(decoding: pair.dropFirst(name.count + 1), as: UTF8.self)))
            }
        }
        return items
    }

    /// All fields that libwebsockets has stored under a known name or one of `customNames`; others are not accessible.
    private static func headers(_ wsi: LibraryConnection) -> HTTPHeaders {
        var headers = HTTPHeaders()
        for (name, token) in names {
            guard let value = wsi.text(token) else { continue }
            headers.add(name, value)
        }
        for name in customNames {
            guard let value = wsi.customText(name + ":") else { continue }
            headers.add(name, value)
        }
        return headers
    }

    /// Further fields that handlers and address limits need.
    private static let customNames =
        ["idempotency-key"] + HTTPHeaders.forwarding.filter { name in !names.contains { $0.0 == name } }

    /// The field names for which libwebsockets has a token; its list also contains pseudo-headers and methods.
    private static let names: [(String, lws_token_indexes)] = (0..<WSI_TOKEN_COUNT.rawValue).compactMap {
        number in
        let token = lws_token_indexes(rawValue: number)
        guard let text = unsafe lws_token_to_string(token) else { return nil }
        let name = unsafe String(cString: text)
        guard name.hasSuffix(":"), !name.hasPrefix(":"), name.count > 1 else { return nil }
        return (String(name.dropLast()), token)
    }

    /// Determines the body's framing; contradictory fields are refused.
    /// - Source: RFC 9112 §6.1, §6.3.
    private static func framing(
        _ headers: HTTPHeaders, _ method: HTTPMethod
    ) throws(Refusal) -> Framing {
        let length = headers["content-length"]
        if let coding = headers["transfer-encoding"] {
            guard length == nil else {
                throw Refusal(400, "Transfer-Encoding can't be combined with Content-Length.")
            }
            guard coding.lowercased() == "chunked" else {
                throw Refusal(501, "The only supported transfer coding is chunked.")
            }
            // libwebsockets takes a chunked body of any other method for the next request.
            guard [.post, .put, .patch].contains(method) else {
                throw Refusal(411, "A body with this method requires Content-Length.")
            }
            return .chunked
        }
        guard let length else { return .none }
        // Digits only, and few enough to fit an integer: no sign, no list such as `5, 5`.
        guard (1...15).contains(length.utf8.count), length.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let count = Int(length)
        else { throw Refusal(400, "Content-Length is malformed.") }
        return count == 0 ? .none : .length(count)
    }
}

extension LibraryConnection {
    /// A field that libwebsockets has no token for; nil if it is missing or empty.
    /// - Parameter name: in lower case, with the colon.
    func customText(_ name: String) -> String? {
        let length = unsafe lws_hdr_custom_length(pointer, name, CInt(name.utf8.count))
        guard length > 0 else { return nil }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(length) + 1) { buffer in
            let copied = unsafe lws_hdr_custom_copy(
                pointer, buffer.baseAddress, length + 1, name, CInt(name.utf8.count))
            guard copied > 0 else { return nil }
            return unsafe String(
                decoding: buffer.prefix(Int(copied)).lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self
            )
            .trimmed
        }
    }

    /// A field that libwebsockets has a token for; nil if it is missing or empty.
    func text(_ token: lws_token_indexes) -> String? {
        let length = unsafe lws_hdr_total_length(pointer, token)
        guard length > 0 else { return nil }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(length) + 1) { buffer in
            let copied = unsafe lws_hdr_copy(pointer, buffer.baseAddress, length + 1, token)
            guard copied > 0 else { return nil }
            return unsafe String(
                decoding: buffer.prefix(Int(copied)).lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}
