import Base
import Foundation
import HTTP
import Interaction
import Node

/// What a client says on its socket beyond that it is there.
///
/// `{"type":"session","id":"…"}`, the session by which it watches, made before it had a token;
/// `{"type":"comment","id":"…","text":"…"}` and `{"type":"react","reactions":{"heart":12}}`.
package enum SyncMessage: Equatable {
    /// As the message's `type`.
    enum Kind: String, CaseIterable {
        case session, comment, react
    }

    case session(SessionID)
    case command(Interaction.Command)

    private struct Form: Decodable {
        let type: String
        let id: String?
        let text: String?
        let reactions: [String: Int]?
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
        case .comment:
            guard let id = form.id, let text = form.text else { return nil }
            self = .command(.comment(key: id, text: text))
        case .react:
            guard let reactions = form.reactions else { return nil }
            self = .command(.react(reactions))
        case nil: return nil
        }
    }

    init?(_ message: WebSocketMessage) {
        guard case .text(let text) = message else { return nil }
        self.init(parsing: text)
    }
}

/// What a client is answered on its socket.
enum SyncAnswer {
    /// - Parameter command: what was done.
    /// - Returns: nil where there is nothing to say.
    static func text(_ reply: Interaction.Reply) -> String? {
        guard case .comment(let comment) = reply else { return nil }
        return SyncNotice.commented.text(["comment": comment.json])
    }

    /// Why something was not done, with the words of a problem document.
    static func text(_ problem: Problem, to command: Interaction.Command) -> String {
        var members: [String: JSON] = [
            "rule": .string(problem.kind), "detail": .string(problem.detail),
        ]
        if case .comment(let key, _) = command { members["id"] = .string(key) }
        if let wait = problem.headers["Retry-After"].flatMap({ Int($0) }) { members["wait"] = .integer(wait) }
        return SyncNotice.refused.text(members)
    }
}
