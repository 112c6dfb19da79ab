import Foundation
import HTTP

/// A token sent as the first message of a WebSocket: `{"type":"token","token":"…"}`.
///
/// Browsers cannot set `Authorization` for a WebSocket, and a token in the address ends up in proxies' logs. The
/// address contains `authenticate=message` to announce it, because viewers without a token need not send anything
/// where viewers are public. (`Sec-WebSocket-Protocol`, where others put tokens, is read up to 128 bytes only by
/// libwebsockets.)
package struct TokenMessage {
    /// Value of the member `type`.
    static let kind = "token"

    /// As the client sent it; not verified yet.
    package let token: String

    private struct Form: Decodable {
        let type: String
        let token: String
    }

    /// Limit of the message in bytes; a token has a few hundred.
    private static let longest = 8_192
    /// How long a client may take to send the message.
    static let patience = Duration.seconds(5)

    /// Parses a message; nil if it is not of this form.
    package init?(_ message: WebSocketMessage) {
        guard case .text(let text) = message, text.utf8.count <= Self.longest,
            let form = try? JSONDecoder().decode(Form.self, from: Data(text.utf8)), form.type == Self.kind
        else { return nil }
        token = form.token
    }

    /// Whether a request announces a token by message; a token in the request itself takes precedence.
    static func isAnnounced(by request: HTTPRequest) -> Bool {
        request.query("authenticate") == "message" && request.headers["authorization"] == nil
            && request.query("access_token") == nil
    }

    /// Waits for the first message; closes the socket on a timeout.
    /// - Returns: nil if another message came, or none.
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
    /// 4401, after HTTP's 401; the range from 4000 is for applications (RFC 6455 §7.4.2).
    static let noToken = WebSocketClose(code: 4_401, reason: "token-missing")

    /// The close code for a refused handshake that had to be accepted first: 4000 plus the HTTP status.
    init(_ problem: Problem) {
        // 4403 means that the participant was removed, and clients do not reconnect; another token may help here.
        let status = problem.status == 403 ? 401 : problem.status
        self.init(code: 4_000 + UInt16(clamping: status), reason: problem.kind)
    }
}

extension HTTPRequest {
    /// The same request with the token in `Authorization`.
    func bearing(_ message: TokenMessage) -> HTTPRequest {
        var request = self
        request.headers.set("Authorization", "Bearer \(message.token)")
        return request
    }
}
