import Base
import Foundation
import HTTP
import Interaction
import Node

/// What a client says on its socket beyond that it is there.
///
/// `{"type":"session","id":"…"}`, the session by which it watches, made before it had a token;
/// and what is said on control channels as well, such as `{"type":"comment","id":"…","text":"…"}`.
package enum SyncMessage: Equatable {
    /// As the message's `type`, beside those of `AudienceMessage`.
    enum Kind: String, CaseIterable {
        case session
    }

    case session(SessionID)
    case command(Interaction.Command)

    private struct Form: Decodable {
        let type: String
        let id: String?
    }

    /// In bytes: a comment with escapes.
    package static let longest = 6 * 1_024

    /// - Returns: nil for what is too long, no JSON, or means nothing.
    package init?(parsing text: String) {
        guard text.utf8.count <= Self.longest,
            let form = try? JSONDecoder().decode(Form.self, from: Data(text.utf8))
        else { return nil }
        switch Kind(rawValue: form.type) {
        case .session:
            guard let id = form.id.flatMap({ SessionID($0) }) else { return nil }
            self = .session(id)
        case nil:
            guard let command = AudienceMessage.command(parsing: Array(text.utf8)) else { return nil }
            self = .command(command)
        }
    }

    init?(_ message: WebSocketMessage) {
        guard case .text(let text) = message else { return nil }
        self.init(parsing: text)
    }
}

/// What a client is answered on its socket.
enum SyncAnswer {
    /// Why something was not done, with the words of a problem document.
    static func text(_ problem: Problem, to command: Interaction.Command) -> String {
        AudienceAnswer.text(
            problem.kind, problem.detail, wait: problem.headers["Retry-After"].flatMap { Int($0) },
            to: command)
    }
}
