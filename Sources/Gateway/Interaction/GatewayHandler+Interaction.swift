import Base
import HTTP
import Interaction
import Node
import Stage

/// The audience's comments, reactions and votes, and the host's moderation and settings.
extension GatewayHandler {
    /// Default of `limit`: comments or gifts per page.
    static let usualPage = 50
    /// Limit of `limit`.
    static let longestPage = 200

    /// Performs a command of the sender in the stream's interaction, which decides whether it is permitted.
    @discardableResult
    func interact(
        _ call: Call, _ command: Interaction.Command
    ) async throws -> Interaction.Reply {
        let (stream, _, sender) = try call.sender()
        return try await service.perform(command, in: stream, from: sender)
    }

    /// Requires an identity of participants; the refusal explains how an anonymous viewer obtains one.
    private func requireIdentity(_ call: Call) throws(Problem) {
        // Where viewers need a token, the command's own check refuses a request without one.
        guard settings.viewers == .everyone, try call.access.credential() == nil else { return }
        throw Self.identityMissing(in: try call.stream)
    }

    /// The 401 for an anonymous viewer, over HTTP and on sockets.
    static func identityMissing(in stream: StreamID) -> Problem {
        Access.unauthorized(
            "Taking part requires a token. Get one by POST /v1/streams/\(stream)/tokens with {\"name\":\"…\"}."
        )
    }

    // MARK: Comments

    /// `POST .../comments`: writes a comment; the client's `id` makes a repetition harmless.
    func writeComment(_ call: Call) async throws -> HTTPResponse {
        try requireIdentity(call)
        let body = try call.participantBody()
        guard let key = try body.string("id") else { throw Interaction.Refusal.invalid("id") }
        guard let text = try body.string("text") else { throw Interaction.Refusal.invalid("text") }
        guard case .comment(let comment) = try await interact(call, .comment(key: key, text: text)) else {
            throw StageRefusal.overloaded
        }
        return Self.fresh(comment.json, status: 201)
    }

    /// `GET .../comments`: a page of the stored comments, in order.
    func listComments(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        let sender = token?.sender(in: stream)
        if let sender { _ = try await service.look(at: stream, as: sender) }
        let before = try number("before", of: call)
        let after = try number("after", of: call)
        let limit = try number("limit", of: call) ?? Self.usualPage
        guard (1...Self.longestPage).contains(limit) else { throw Interaction.Refusal.invalid("limit") }
        return Self.fresh(
            try await service.comments(of: stream, before: before, after: after, limit: limit, as: sender))
    }

    /// A number from 0 in the query; nil if the parameter is missing.
    func number(_ name: String, of call: Call) throws(Interaction.Refusal) -> Int? {
        guard let text = call.request.query(name) else { return nil }
        guard let number = Int(text), number >= 0 else { throw .invalid(name) }
        return number
    }

    /// The comment's number in the path.
    private func comment(_ call: Call) throws(Interaction.Refusal) -> Int {
        guard let number = call.parameters["comment"].flatMap({ Int($0) }) else { throw .unknownComment }
        return number
    }

    /// `DELETE .../comments/{comment}`: removes a comment.
    func deleteComment(_ call: Call) async throws -> HTTPResponse {
        try await interact(call, .delete(try comment(call)))
        return HTTPResponse(status: 204)
    }

    /// `PUT .../comments/{comment}/pin`: pins a comment, in place of any other.
    func pinComment(_ call: Call) async throws -> HTTPResponse {
        try await interact(call, .pin(try comment(call)))
        return HTTPResponse(status: 204)
    }

    /// `DELETE .../pin`: unpins the pinned comment.
    func unpinComment(_ call: Call) async throws -> HTTPResponse {
        try await interact(call, .unpin)
        return HTTPResponse(status: 204)
    }

    // MARK: People

    /// `PUT .../silences/{participant}`: silences a participant for some seconds.
    ///
    /// With `shadow` the participant does not notice: only they see their own comments.
    func silence(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let body = try call.participantBody()
        guard let seconds = try body.integer("seconds") else { throw Interaction.Refusal.invalid("seconds") }
        let isShadow = try body.bool("shadow") ?? false
        try await interact(call, .silence(target, seconds: seconds, isShadow: isShadow))
        return HTTPResponse(status: 204)
    }

    /// `DELETE .../silences/{participant}`: ends a silence early.
    func unsilence(_ call: Call) async throws -> HTTPResponse {
        try await interact(call, .unsilence(try call.participant))
        return HTTPResponse(status: 204)
    }

    /// `GET .../audit`: the log of moderation.
    func showAudit(_ call: Call) async throws -> HTTPResponse {
        let (stream, _, sender) = try call.sender()
        return Self.fresh(try await service.audit(of: stream, as: sender))
    }

    // MARK: Reactions

    /// `POST .../reactions`: adds taps by kind, and answers how many were counted.
    func react(_ call: Call) async throws -> HTTPResponse {
        try requireIdentity(call)
        guard let taps = try call.participantBody().counts("reactions") else {
            throw Interaction.Refusal.invalid("reactions")
        }
        guard case .counted(let count) = try await interact(call, .react(taps)) else {
            throw StageRefusal.overloaded
        }
        return Self.fresh(.object(["counted": .integer(count)]))
    }

    // MARK: Polls

    /// `POST .../polls`: opens a poll, or a quiz if `right` names the correct options.
    func openPoll(_ call: Call) async throws -> HTTPResponse {
        let body = try call.participantBody()
        guard let question = try body.string("question") else {
            throw Interaction.Refusal.invalid("question")
        }
        guard let options = try body.strings("options") else { throw Interaction.Refusal.invalid("options") }
        var draft = Poll.Draft(question: question, options: options)
        draft.isMultiple = try body.bool("multiple") ?? false
        if let name = try body.string("results") {
            guard let results = Poll.Results(rawValue: name) else {
                throw Interaction.Refusal.invalid("results")
            }
            draft.results = results
        }
        draft.right = try body.integers("right")
        draft.seconds = try body.integer("seconds")
        return try await answerPoll(call, .openPoll(draft), status: 201)
    }

    /// `GET .../polls/{poll}`: the poll, with the sender's vote.
    func showPoll(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        let sender = token?.sender(in: stream)
        return Self.fresh(try await service.poll(try poll(call), of: stream, as: sender))
    }

    /// `PUT .../polls/{poll}/vote`: sets the sender's vote.
    func vote(_ call: Call) async throws -> HTTPResponse {
        try requireIdentity(call)
        guard let options = try call.participantBody().integers("options") else {
            throw Interaction.Refusal.invalid("options")
        }
        return try await answerPoll(call, .vote(try poll(call), options: options))
    }

    /// `POST .../polls/{poll}/close`: closes a poll.
    func closePoll(_ call: Call) async throws -> HTTPResponse {
        try await answerPoll(call, .closePoll(try poll(call)))
    }

    /// The poll's number in the path.
    private func poll(_ call: Call) throws(Interaction.Refusal) -> Int {
        guard let number = call.parameters["poll"].flatMap({ Int($0) }) else { throw .unknownPoll }
        return number
    }

    /// Performs a command about a poll and answers with the poll.
    private func answerPoll(
        _ call: Call, _ command: Interaction.Command, status: Int = 200
    ) async throws -> HTTPResponse {
        guard case .poll(let poll) = try await interact(call, command) else { throw StageRefusal.overloaded }
        return Self.fresh(poll.json, status: status)
    }

    // MARK: A card

    /// `PUT .../card`: shows a card, in place of any other.
    func showCard(_ call: Call) async throws -> HTTPResponse {
        let body = try call.participantBody()
        guard let title = try body.string("title") else { throw Interaction.Refusal.invalid("title") }
        guard let link = try body.string("link") else { throw Interaction.Refusal.invalid("link") }
        let card = StreamCard(
            title: title, link: link, picture: try body.string("picture"), data: body.any("data"))
        try await interact(call, .showCard(card))
        return HTTPResponse(status: 204)
    }

    /// `DELETE .../card`: removes the card.
    func removeCard(_ call: Call) async throws -> HTTPResponse {
        try await interact(call, .removeCard)
        return HTTPResponse(status: 204)
    }

    // MARK: Settings

    /// `GET .../interaction`: the settings of the stream's interaction; hosts also see the hidden ones.
    func showInteraction(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        let sender = token?.sender(in: stream)
        return Self.fresh(try await service.interactionSettings(of: stream, as: sender))
    }

    /// `PATCH .../interaction`: changes settings, and answers with all of them.
    func editInteraction(_ call: Call) async throws -> HTTPResponse {
        let (stream, _, sender) = try call.sender()
        let body = try call.body()
        var edit = InteractionEdit()
        edit.takesComments = try body.bool("comments")
        edit.reactions = try body.strings("reactions")
        edit.slowModeSeconds = try body.integer("slowMode")
        edit.commentTier = try body.clearableString("commentTier")
        edit.words = try body.strings("words")
        edit.gifts = try body.giftCatalogue("gifts")
        edit.widgets = try body.strings("widgets").map { names in
            try names.map { name in
                guard let widget = InteractionSettings.Widget(rawValue: name) else {
                    throw Interaction.Refusal.invalid("widgets")
                }
                return widget
            }
        }
        edit.takesDuels = try body.bool("duels")
        _ = try await service.perform(.edit(edit), in: stream, from: sender)
        return Self.fresh(try await service.interactionSettings(of: stream, as: sender))
    }
}

/// Here and not among the other refusals, because the descriptions belong to these routes.
extension Interaction.Refusal: ProblemConvertible {
    /// Ends the sentence "FIELD must be …", by the field's name.
    private static let allowed: [String: String] = [
        "from": "the name of the inviting host's stream", "to": "the name of another stream",
        "stream": "the name of one of the duel's streams, on whose behalf an admin acts",
        "duelSeconds":
            "a whole number from \(DuelTerms.secondsRange.lowerBound) to \(DuelTerms.secondsRange.upperBound)",
        "penaltySeconds": "a whole number from 0 to \(DuelTerms.penaltyRange.upperBound)",
        "weights":
            "an object with gifts and reactions, each a whole number from 0 to \(DuelTerms.weightRange.upperBound), not both 0",
        "title": "1 to \(StreamCard.titleLength) visible characters",
        "link": "an https address of up to \(StreamCard.addressLength) characters",
        "picture": "an https address or a path, of up to \(StreamCard.addressLength) characters",
        "data": "JSON of up to \(StreamCard.dataLength) bytes",
        "key": "1 to \(Interaction.keyLength) printable ASCII characters without spaces",
        "giver": "the giver's identity", "name": "1 to \(Gift.nameLength) visible characters",
        "gift": "the id of a gift in the stream's catalogue",
        "count": "a whole number from \(Gift.countRange.lowerBound) to \(Gift.countRange.upperBound)",
        "price":
            "an object with a currency and an amount in its smallest unit, a whole number from 0 to "
            + "\(GiftCatalogue.priceRange.upperBound)",
        "gifts":
            "an object with a currency, 1 to 8 of A-Z, and up to \(GiftCatalogue.limit) kinds, each with an id of 1 to "
            + "\(GiftCatalogue.idLength) of a-z 0-9 -, a name of up to \(GiftCatalogue.nameLength) characters, a picture, "
            + "which is an emoji, an https address or a path, and a price, a whole number from 0 to "
            + "\(GiftCatalogue.priceRange.upperBound)",
        "id": "1 to \(Interaction.keyLength) printable ASCII characters without spaces",
        "text": "the comment's text",
        "question": "1 to \(Poll.questionLength) characters",
        "options":
            "for a new poll \(Poll.optionRange.lowerBound) to \(Poll.optionRange.upperBound) different texts of up to "
            + "\(Poll.optionLength) characters; for a vote different positions of options, from 0, and only one unless "
            + "the poll allows several",
        "results": "live or closed",
        "right":
            "a list of different positions of options, from 0, and only one unless the poll allows several",
        "before": "the number of a comment", "after": "the number of a comment or gift",
        "limit": "a whole number from 1 to 200",
        "seconds":
            "a whole number from \(Interaction.silenceRange.lowerBound) to \(Interaction.silenceRange.upperBound)",
        "reactions":
            "up to \(InteractionSettings.reactionLimit) different names of 1 to "
            + "\(InteractionSettings.reactionNameLength) of a-z 0-9 -; for taps, an object of numbers above 0 by such names",
        "commentTier": "a tier's name, 1 to 32 of A-Z a-z 0-9 _ -, or null",
        "slowMode": "a whole number from 0 to \(InteractionSettings.slowModeRange.upperBound)",
        "period": "stream or day",
        "widgets":
            "a list of different "
            + InteractionSettings.Widget.allCases.map(\.rawValue).joined(separator: ", "),
        "words":
            "up to \(InteractionSettings.wordLimit) words or phrases of up to \(InteractionSettings.wordLength) characters",
    ]

    var problem: Problem {
        var problem = Problem(kind.status, name, explanation)
        if case .invalid(let field) = self {
            // Duels and silences both have a field `seconds`, with different ranges.
            let name = field == "duelSeconds" ? "seconds" : field
            problem.members["field"] = .string(name)
            if let allowed = Self.allowed[field] { problem.detail = "\(name) must be \(allowed)." }
        }
        if let wait {
            problem.headers.set("Retry-After", "\(wait)")
        } else if kind == .limit {
            problem.headers.set("Retry-After", "10")
        }
        return problem
    }
}
