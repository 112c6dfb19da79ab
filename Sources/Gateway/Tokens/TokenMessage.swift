import Foundation
import HTTP

/// A token that comes as the first message of a WebSocket: `{"type":"token","token":"…"}`.
///
/// A browser's WebSocket carries no Authorization header, and what is in its address is kept in the logs of proxies.
/// The address says `authenticate=message` instead, because where viewers are public those without a token wait for
/// nothing. (libwebsockets reads 128 bytes of Sec-WebSocket-Protocol, where others put tokens.)
struct TokenMessage {
    /// As the message's `type`.
    static let kind = "token"

    let token: String

    private struct Form: Decodable {
        let type: String
        let token: String
    }

    /// In bytes; a token has some hundred.
    private static let longest = 8_192
    /// How long a client may take to send it.
    static let patience = Duration.seconds(5)

    init?(_ message: WebSocketMessage) {
        guard case .text(let text) = message, text.utf8.count <= Self.longest,
            let form = try? JSONDecoder().decode(Form.self, from: Data(text.utf8)), form.type == Self.kind
        else { return nil }
        token = form.token
    }

    /// Whether a request says that its token is to come; one that it has already counts.
    static func isAnnounced(by request: HTTPRequest) -> Bool {
        request.query("authenticate") == "message" && request.headers["authorization"] == nil
            && request.query("access_token") == nil
    }

    /// Waits for the first message, and closes the socket when that takes too long.
    /// - Returns: nil if something else came, or nothing.
    static func first(
        on connection: WebSocketConnection, patience: Duration = Self.patience
    ) async -> TokenMessage? {
        let limit = Task {
            do { try await Task.sleep(for: patience) } catch { return }
            connection.close(.noToken)
        }
        defer { limit.cancel() }
        for await message in connection.incoming { return TokenMessage(message) }
        return nil
    }
}

extension WebSocketClose {
    static let noToken = WebSocketClose(code: 4_401, reason: "token-missing")

    /// Why what was asked for on a socket is not given.
    init(_ problem: Problem) {
        // 4403 says that somebody was sent away; with another token this one may well follow.
        let status = problem.status == 403 ? 401 : problem.status
        self.init(code: 4_000 + UInt16(clamping: status), reason: problem.kind)
    }
}

extension HTTPRequest {
    /// The same request with a token in its header.
    func bearing(_ message: TokenMessage) -> HTTPRequest {
        var request = self
        request.headers.set("Authorization", "Bearer \(message.token)")
        return request
    }
}
