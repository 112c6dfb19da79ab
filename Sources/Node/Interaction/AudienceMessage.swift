import Base
import Foundation
import Interaction
import Stage

/// What somebody says as one of the audience, on a sync socket or on a session's control channel: the same on both.
package enum AudienceMessage {
    /// As the message's `type`.
    package enum Kind: String, CaseIterable, Sendable {
        case comment, react, vote
    }

    private struct Form: Decodable {
        let type: String
        let id: String?
        let text: String?
        let reactions: [String: Int]?
        let poll: Int?
        let options: [Int]?
    }

    /// - Returns: nil for what is no JSON, or means nothing.
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

/// What somebody is answered who said something as one of the audience.
package enum AudienceAnswer {
    /// - Returns: nil where there is nothing to say.
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

    /// Why something was not done.
    /// - Parameters:
    ///   - rule: for programs to compare.
    ///   - wait: seconds until it may be tried again; nil where time alone does not help.
    package static func text(
        _ rule: String, _ detail: String, wait: Int?, to command: Interaction.Command
    ) -> String {
        var members: [String: JSON] = ["rule": .string(rule), "detail": .string(detail)]
        if case .comment(let key, _) = command { members["id"] = .string(key) }
        if let wait { members["wait"] = .integer(wait) }
        return SyncNotice.refused.text(members)
    }

    /// The same for somebody on a control channel.
    static func text(_ refusal: StageRefusal, to command: Interaction.Command) -> String {
        let (rule, detail, wait) = refusal.words
        return text(rule, detail, wait: wait, to: command)
    }
}

extension StageRefusal {
    /// The rule, what people are told, and in how many seconds it may be tried again, as a problem document says it.
    fileprivate var words: (rule: String, detail: String, wait: Int?) {
        switch self {
        case .interaction(let refusal):
            (refusal.name, refusal.explanation, refusal.wait ?? (refusal.kind == .limit ? 10 : nil))
        case .rejected(let rejection): (rejection.name, rejection.explanation, nil)
        case .tooManyCommands(let wait):
            ("too-many-commands", "You did much in a short time; try again in \(wait) seconds.", wait)
        case .storage: ("storage", "The change could not be stored, so it was not made.", 5)
        case .unknownStream: ("unknown-stream", "There is no such stream.", nil)
        case .overloaded, .streamExists, .keyReused, .busy:
            ("overloaded", "The server has no room for this.", 5)
        }
    }
}
