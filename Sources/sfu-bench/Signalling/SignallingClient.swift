import Base
import Foundation
import FoundationNetworking
import Net
import TURN

/// The HTTP side of WHIP and WHEP: a POST exchanges offer and answer, a DELETE ends the session.
///
/// - Source: RFC 9725 §4.2 (WHIP), draft-ietf-wish-whep §4.2.
final class SignallingClient: Sendable {
    /// The response to an offer.
    struct Answer: Sendable {
        let sdp: String
        /// The session's URL, for DELETE; nil if the server named none.
        let session: URL?
        /// A relay through which the server can be reached; nil if it named none that can be used.
        let relay: TURNClientAgent.Relay?
        /// When the request was sent, and when the whole response had arrived.
        let requested: MonotonicTime
        let answered: MonotonicTime
    }

    /// In bytes; a longer body cannot be an SDP answer.
    private static let maximumAnswer = 1 << 20
    private let session: URLSession

    /// - Parameters:
    ///   - connections: to one server at the same time; further requests wait.
    ///   - timeout: for each request, in seconds.
    init(connections: Int = 128, timeout: Double = 30) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = connections
        configuration.timeoutIntervalForRequest = timeout
        // Clients are independent of each other: no cookies and no cache in common.
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        session = URLSession(configuration: configuration)
    }

    /// Posts an offer; one redirect on the same host is followed.
    /// - Throws: if the server cannot be reached, refuses, or answers with something other than an answer.
    func post(offer: String, to endpoint: URL, token: String?) async throws(SignallingError) -> Answer {
        var request = URLRequest(url: endpoint)
        request.httpMethod = "POST"
        request.httpBody = Data(offer.utf8)
        request.setValue("application/sdp", forHTTPHeaderField: "Content-Type")
        request.setValue("application/sdp", forHTTPHeaderField: "Accept")
        authorize(&request, token)
        let requested = MonotonicClock.now()
        let (body, response) = try await send(request)
        let answered = MonotonicClock.now()
        guard (200...201).contains(response.statusCode) else { throw Self.refusal(response, body) }
        guard body.count <= Self.maximumAnswer else { throw .unusable("\(body.count) bytes") }
        let location = response.value(forHTTPHeaderField: "Location")
        return Answer(
            sdp: String(decoding: body, as: UTF8.self),
            // The `Location` may be relative, to the URL after a redirect.
            session: location.flatMap { URL(string: $0, relativeTo: response.url ?? endpoint)?.absoluteURL },
            relay: response.value(forHTTPHeaderField: "Link").flatMap { TURNClientAgent.Relay(links: $0) },
            requested: requested, answered: answered)
    }

    /// Ends a session.
    func delete(_ url: URL, token: String?) async throws(SignallingError) {
        var request = URLRequest(url: url)
        request.httpMethod = "DELETE"
        authorize(&request, token)
        let (body, response) = try await send(request)
        // 404: the session has ended already, which is what was wanted.
        guard (200..<300).contains(response.statusCode) || response.statusCode == 404 else {
            throw Self.refusal(response, body)
        }
    }

    /// Posts JSON, and returns the body of a successful response.
    func post(json: Data, to url: URL, token: String? = nil) async throws(SignallingError) -> Data {
        try await send(json: json, by: "POST", to: url, token: token)
    }

    /// Sends JSON by any method, and returns the body of a successful response.
    func send(
        json: Data, by method: String, to url: URL, token: String?
    ) async throws(SignallingError) -> Data {
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBody = json
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        authorize(&request, token)
        let (body, response) = try await send(request)
        guard (200..<300).contains(response.statusCode) else { throw Self.refusal(response, body) }
        return body
    }

    /// Whether a GET of this URL succeeds; a failed request counts as no.
    func knows(_ url: URL, token: String?) async -> Bool {
        var request = URLRequest(url: url)
        authorize(&request, token)
        guard let (_, response) = try? await send(request) else { return false }
        return (200..<300).contains(response.statusCode)
    }

    /// Returns the body of a response with status 200; throws for any other.
    func get(_ url: URL, token: String? = nil) async throws(SignallingError) -> String {
        var request = URLRequest(url: url)
        authorize(&request, token)
        let (body, response) = try await send(request)
        guard response.statusCode == 200 else { throw Self.refusal(response, body) }
        return String(decoding: body, as: UTF8.self)
    }

    private func authorize(_ request: inout URLRequest, _ token: String?) {
        guard let token else { return }
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    }

    /// Sends a request, and repeats it where a redirect led (RFC 9725 §4.5).
    ///
    /// Foundation on Linux follows a 307 automatically, but drops the request's body.
    private func send(_ request: URLRequest) async throws(SignallingError) -> (Data, HTTPURLResponse) {
        let first = try await sendOnce(request)
        guard request.httpBody != nil, let target = first.1.url, let url = request.url,
            target.absoluteURL != url.absoluteURL
        else { return first }
        // The load is meant for the server that the user named, and for no other.
        guard target.host == url.host else {
            throw .unusable("redirected to another host, \(target.host ?? "?"); use that one")
        }
        var again = request
        again.url = target
        return try await sendOnce(again)
    }

    /// Sends a request; system errors become `unreachable`, with the host that was tried.
    private func sendOnce(_ request: URLRequest) async throws(SignallingError) -> (Data, HTTPURLResponse) {
        let result: (Data, URLResponse)
        do {
            result = try await session.data(for: request)
        } catch {
            let host = request.url.map { "\($0.host ?? "?"):\($0.port ?? 80)" } ?? "?"
            throw .unreachable("\(host): \((error as NSError).localizedDescription)")
        }
        guard let response = result.1 as? HTTPURLResponse else { throw .unusable("not HTTP") }
        return (result.0, response)
    }

    /// The error for a refused request, with the detail or title of problem+json (RFC 9457), or the start of its text.
    private static func refusal(_ response: HTTPURLResponse, _ body: Data) -> SignallingError {
        struct Problem: Decodable {
            var title: String?
            var detail: String?
        }
        var detail = ""
        if let problem = try? JSONDecoder().decode(Problem.self, from: body) {
            detail = problem.detail ?? problem.title ?? ""
        } else {
            detail = String(decoding: body.prefix(200), as: UTF8.self)
        }
        // Seconds only; a date, or more than a day, is ignored.
        let seconds = response.value(forHTTPHeaderField: "Retry-After").flatMap { Double($0) }
        let retryAfter = seconds.flatMap { (0...86_400).contains($0) ? $0 : nil }
        return .refused(status: response.statusCode, detail: Format.line(detail), retryAfter: retryAfter)
    }
}
