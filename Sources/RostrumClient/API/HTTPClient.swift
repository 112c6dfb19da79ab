import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends requests to one server, and turns its refusals into errors.
final class HTTPClient: Sendable {
    /// A request to the server.
    struct Request: Sendable {
        var method = "GET"
        /// Path on the server; its parts must be percent-encoded.
        var path: String
        var query: [URLQueryItem] = []
        /// For the header `Authorization`; nil to send none.
        var token: String?
        var body: Data?
        var contentType = "application/json"
    }

    /// A response with a status of success.
    struct Answer: Sendable {
        var status: Int
        var body: Data
        /// The address that was answered, to which relative addresses refer.
        var url: URL
        /// The header `Location`, as an absolute address.
        var location: URL?
    }

    /// In seconds: the longest time without any byte from the server.
    static let patience = 10.0
    /// In bytes; the API gives no larger answers.
    static let maximumAnswer = 16 << 20
    /// Redirects that are followed for one request.
    static let mostRedirects = 5

    let origin: URL
    private let session: URLSession

    // No cookies and no cache: the token identifies the client, and answers change all the time.
    init(_ origin: URL) {
        self.origin = origin
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        configuration.timeoutIntervalForRequest = Self.patience
        session = URLSession(configuration: configuration, delegate: NoRedirects(), delegateQueue: nil)
    }

    // A session that is not invalidated is never freed, nor are its connections.
    deinit { session.finishTasksAndInvalidate() }

    /// The address of a path on the server.
    func url(_ path: String, _ query: [URLQueryItem] = []) throws(RostrumError) -> URL {
        guard path.hasPrefix("/"), let base = URL(string: path, relativeTo: origin)?.absoluteURL,
            var parts = URLComponents(url: base, resolvingAgainstBaseURL: true)
        else { throw .unusable("\(path) is no path below \(origin)") }
        if !query.isEmpty { parts.queryItems = (parts.queryItems ?? []) + query }
        // A path that begins with two slashes would name another host, which must not get the token.
        guard let url = parts.url, url.host == origin.host, url.port == origin.port else {
            throw .unusable("\(path) is no path below \(origin)")
        }
        return url
    }

    /// - Throws: `RostrumError`, if the server cannot be reached or answers with a status of failure.
    func send(_ request: Request) async throws(RostrumError) -> Answer {
        try await send(request, to: url(request.path, request.query))
    }

    func send(_ request: Request, to url: URL) async throws(RostrumError) -> Answer {
        var message = URLRequest(url: url)
        message.httpMethod = request.method
        if let body = request.body {
            message.httpBody = body
            message.setValue(request.contentType, forHTTPHeaderField: "Content-Type")
        }
        if let token = request.token {
            message.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        }
        let (body, response) = try await load(message)
        guard body.count <= Self.maximumAnswer else { throw .unusable("an answer of \(body.count) bytes") }
        guard (200..<300).contains(response.statusCode) else { throw Self.refusal(response, body) }
        let from = response.url ?? url
        let location = response.value(forHTTPHeaderField: "Location")
        return Answer(
            status: response.statusCode, body: body, url: from,
            location: location.flatMap { URL(string: $0, relativeTo: from)?.absoluteURL })
    }

    /// Sends a request, and follows redirects.
    private func load(_ request: URLRequest) async throws(RostrumError) -> (Data, HTTPURLResponse) {
        var message = request
        for _ in 0...Self.mostRedirects {
            let (body, response) = try await loadOnce(message)
            guard let next = Redirect(of: message, by: response) else { return (body, response) }
            message = next.request
        }
        throw .unusable("more than \(Self.mostRedirects) redirects")
    }

    private func loadOnce(_ request: URLRequest) async throws(RostrumError) -> (Data, HTTPURLResponse) {
        let result: (Data, URLResponse)
        do {
            result = try await session.data(for: request)
        } catch {
            let host = request.url?.host ?? "?"
            throw .unreachable("\(host): \((error as NSError).localizedDescription)")
        }
        guard let response = result.1 as? HTTPURLResponse else { throw .unusable("this is not HTTP") }
        return (result.0, response)
    }

    /// The error for a response with a status of failure.
    /// - Source: RFC 9457 (problem documents); RFC 9110 §10.2.3 (`Retry-After`).
    private static func refusal(_ response: HTTPURLResponse, _ body: Data) -> RostrumError {
        let problem = (try? JSONValue(parsing: body)) ?? .null
        let seconds = response.value(forHTTPHeaderField: "Retry-After").flatMap(Int.init)
        // At most an hour, so that a wrong header does not stop a client for good.
        return .refused(
            status: response.statusCode, rule: problem["rule"].string,
            detail: problem["detail"].string ?? problem["title"].string ?? "status \(response.statusCode)",
            retryAfter: seconds.map { .seconds(min(max($0, 0), 3_600)) })
    }
}

extension String {
    /// Percent-encoded as one part of a path.
    var pathPart: String {
        let plain = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~")
        return addingPercentEncoding(withAllowedCharacters: plain) ?? ""
    }
}
