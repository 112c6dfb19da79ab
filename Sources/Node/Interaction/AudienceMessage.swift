import Base
import Foundation
import Interaction
import Stage

/// A message of a member of the audience: a comment, a reaction or a vote.
///
/// It has the same form on a sync socket and on a session's control channel.
package enum AudienceMessage {
    /// The values of the message's `type`.
    package enum Kind: String, CaseIterable, Sendable {
        case comment, react, vote
    }

    /// All members that any message may have; each kind checks for those it needs.
    private struct Form: Decodable {
        let type: String
        let id: String?
        let text: String?
        let reactions: [String: Int]?
        let poll: Int?
        let options: [Int]?
    }

    /// - Returns: nil if the message is not JSON, has another type, or lacks a member that its type needs.
    package static func command(parsing bytes: [UInt8]) -> Interaction.Command? {
        guard let form = try? JSONDecoder().decode(Form.self, from: Data(bytes)) else { return nil }
        switch Kind(rawValue: form.type) {
        case .comment:
            guard let id = form.id, let text = form.text else { return nil }
            return .comment(key: id, text: text)
        case .react: return form.reactions.map { .react($0) }
        case .vote:
            guard let poll = form.poll, let options = form.options else { return nil }
            return .vote(poll, options: options)
        case nil: return nil
        }
    }
}

/// The answer to a message of a member of the audience.
package enum AudienceAnswer {
    /// What was done; nil for a reaction, which is not answered.
    package static func text(_ reply: Interaction.Reply, to command: Interaction.Command) -> String? {
        switch (reply, command) {
        case (.comment(let comment), _): SyncNotice.commented.text(["comment": comment.json])
        case (_, .vote(let poll, let options)):
            SyncNotice.voted.text([
                "poll": .integer(poll), "options": .array(options.map { .integer($0) }),
            ])
        default: nil
        }
    }

    /// Why a message was refused.
    /// - Parameters:
    ///   - rule: a name for programs to compare.
    ///   - detail: a sentence for people.
    ///   - wait: seconds until another attempt may succeed; nil if time alone does not help.
    package static func text(
        _ rule: String, _ detail: String, wait: Int?, to command: Interaction.Command
    ) -> String {
        var members: [String: JSON] = ["rule": .string(rule), "detail": .string(detail)]
        if case .comment(let key, _) = command { members["id"] = .string(key) }
        if let wait { members["wait"] = .integer(wait) }
        return SyncNotice.refused.text(members)
    }

    /// Why a message on a control channel was refused.
    static func text(_ refusal: StageRefusal, to command: Interaction.Command) -> String {
        let (rule, detail, wait) = refusal.words
        return text(rule, detail, wait: wait, to: command)
    }
}

extension StageRefusal {
    /// The rule, a sentence for people, and the seconds until another attempt may succeed, as in a problem document.
    fileprivate var words: (rule: String, detail: String, wait: Int?) {
        switch self {
        case .interaction(let refusal):
            (refusal.name, refusal.explanation, refusal.wait ?? (refusal.kind == .limit ? 10 : nil))
        case .rejected(let rejection): (rejection.name, rejection.explanation, rejection.wait)
        case .tooManyCommands(let wait):
            ("too-many-commands", "Too many changes in a short time. Try again in \(wait.inSeconds).", wait)
        case .storage: ("storage", "The server couldn't save the change, so nothing was changed.", 5)
        case .unknownStream: ("unknown-stream", "There is no such stream.", nil)
        case .streamExists: ("stream-exists", "A stream with this ID already exists.", nil)
        case .keyReused:
            ("idempotency-key-reused", "This Idempotency-Key was used with a different request.", nil)
        case .busy: ("under-way", "The same request is still in progress.", 1)
        case .overloaded: ("overloaded", "The server is full. Try again in a moment.", 5)
        }
    }
}

extension Rejection {
    /// Seconds until another attempt may succeed; nil if time alone does not help.
    fileprivate var wait: Int? {
        switch self {
        case .backstage: 10
        default: kind == .limit ? 10 : nil
        }
    }
}
