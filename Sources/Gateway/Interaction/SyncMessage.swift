import Base
import Foundation
import HTTP
import Interaction
import Node

/// A follower's message on its socket.
///
/// `{"type":"session","id":"…"}` names the session by which the client watches, created before it had a token. The
/// other messages are those of control channels, such as `{"type":"comment","id":"…","text":"…"}`.
package enum SyncMessage: Equatable {
    /// Values of the member `type`, in addition to those of `AudienceMessage`.
    enum Kind: String, CaseIterable {
        case session
    }

    /// Assign this session to the socket's identity.
    case session(SessionID)
    /// Perform this command as the socket's identity.
    case command(Interaction.Command)

    private struct Form: Decodable {
        let type: String
        let id: String?
    }

    /// Limit of a message in bytes: a comment with escapes.
    package static let longest = 6 * 1_024

    /// Parses a message; nil if it is too long, no JSON, or of no known kind.
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

    /// Binary messages have no meaning.
    init?(_ message: WebSocketMessage) {
        guard case .text(let text) = message else { return nil }
        self.init(parsing: text)
    }
}

/// Answers to a follower's commands.
enum SyncAnswer {
    /// A refusal, with kind and detail of the problem document that HTTP would send.
    static func text(_ problem: Problem, to command: Interaction.Command) -> String {
        AudienceAnswer.text(
            problem.kind, problem.detail, wait: problem.headers["Retry-After"].flatMap { Int($0) },
            to: command)
    }
}
