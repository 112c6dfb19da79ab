import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends requests to one server, and makes errors of its refusals.
final class HTTPClient: Sendable {
    struct Request: Sendable {
        var method = "GET"
        /// Below the server's address, each part percent-encoded already.
        var path: String
        var query: [URLQueryItem] = []
        var token: String?
        var body: Data?
        var contentType = "application/json"
    }

    struct Answer: Sendable {
        var status: Int
        var body: Data
        /// Where it came from: of relative addresses in it.
        var url: URL
        var location: URL?
    }

    /// Longest time the server may take, in seconds; some questions say that they take longer.
    static let patience = 10.0
    /// No answer of the API is longer, in bytes.
    static let maximumAnswer = 16 << 20

    let origin: URL
    private let session: URLSession

    init(_ origin: URL) {
        self.origin = origin
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        configuration.timeoutIntervalForRequest = Self.patience
        session = URLSession(configuration: configuration)
    }

    func url(_ path: String, _ query: [URLQueryItem] = []) throws(RostrumError) -> URL {
        guard path.hasPrefix("/"), let base = URL(string: path, relativeTo: origin)?.absoluteURL,
            var parts = URLComponents(url: base, resolvingAgainstBaseURL: true)
        else { throw .unusable("\(path) is no path below \(origin)") }
        if !query.isEmpty { parts.queryItems = (parts.queryItems ?? []) + query }
        // A path that begins with two slashes would name another host.
        guard let url = parts.url, url.host == origin.host, url.port == origin.port else {
            throw .unusable("\(path) is no path below \(origin)")
        }
        return url
    }

    /// - Throws: where the server cannot be reached, or answers with a status of failure.
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

    private func load(_ request: URLRequest) async throws(RostrumError) -> (Data, HTTPURLResponse) {
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

    /// What a refusal says of itself.
    /// - Source: RFC 9457 (problem documents); RFC 9110 §10.2.3 (`Retry-After`).
    private static func refusal(_ response: HTTPURLResponse, _ body: Data) -> RostrumError {
        let problem = (try? JSONValue(parsing: body)) ?? .null
        let seconds = response.value(forHTTPHeaderField: "Retry-After").flatMap(Int.init)
        return .refused(
            status: response.statusCode, rule: problem["rule"].string,
            detail: problem["detail"].string ?? problem["title"].string ?? "status \(response.statusCode)",
            retryAfter: seconds.map { .seconds(min(max($0, 0), 3_600)) })
    }
}

extension String {
    /// Fit to be one part of a path.
    var pathPart: String {
        let plain = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~")
        return addingPercentEncoding(withAllowedCharacters: plain) ?? ""
    }
}
