import Base
import Foundation
import FoundationNetworking
import Net
import TURN

/// Speaks WHIP and WHEP: one POST for an answer, one DELETE to leave.
///
/// - Source: RFC 9725 §4.2 (WHIP), draft-ietf-wish-whep §4.2.
final class SignallingClient: Sendable {
    /// What a POST brought.
    struct Answer: Sendable {
        let sdp: String
        /// Where DELETE goes; nil if the server named nothing.
        let session: URL?
        /// By which the server can be reached, too; nil where it names none.
        let relay: TURNClientAgent.Relay?
        /// When the request left and when its answer was there.
        let requested: MonotonicTime
        let answered: MonotonicTime
    }

    /// Longer answers are no SDP.
    private static let maximumAnswer = 1 << 20
    private let session: URLSession

    /// - Parameter connections: to one server at a time; requests beyond wait.
    init(connections: Int = 128, timeout: Double = 30) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = connections
        configuration.timeoutIntervalForRequest = timeout
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        session = URLSession(configuration: configuration)
    }

    /// Sends an offer; redirects are followed.
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
        // 404: it is gone already, and that is what was wanted.
        guard (200..<300).contains(response.statusCode) || response.statusCode == 404 else {
            throw Self.refusal(response, body)
        }
    }

    /// Sends JSON, and returns what came back with a status of success.
    func post(json: Data, to url: URL, token: String? = nil) async throws(SignallingError) -> Data {
        try await send(json: json, by: "POST", to: url, token: token)
    }

    /// The same by another method.
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

    /// Whether the server knows what is there; no answer counts as no.
    func knows(_ url: URL, token: String?) async -> Bool {
        var request = URLRequest(url: url)
        authorize(&request, token)
        guard let (_, response) = try? await send(request) else { return false }
        return (200..<300).contains(response.statusCode)
    }

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

    /// Sends a request, and once more to where a redirect led (RFC 9725 §4.5).
    ///
    /// Foundation on Linux follows a 307 by itself, but without the body of the request.
    private func send(_ request: URLRequest) async throws(SignallingError) -> (Data, HTTPURLResponse) {
        let first = try await sendOnce(request)
        guard request.httpBody != nil, let target = first.1.url, let url = request.url,
            target.absoluteURL != url.absoluteURL
        else { return first }
        // Load is for the server that the user named.
        guard target.host == url.host else {
            throw .unusable("redirected to another host, \(target.host ?? "?"): name that one")
        }
        var again = request
        again.url = target
        return try await sendOnce(again)
    }

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

    /// What a refusal says of itself: the title and detail of problem+json (RFC 9457), or plain text.
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
        let seconds = response.value(forHTTPHeaderField: "Retry-After").flatMap { Double($0) }
        let retryAfter = seconds.flatMap { (0...86_400).contains($0) ? $0 : nil }
        return .refused(status: response.statusCode, detail: detail, retryAfter: retryAfter)
    }
}
