import Base

/// A question from a host to the audience, and the answers so far.
package struct Poll: Equatable, Sendable, Codable {
    /// When others than hosts see how many chose each option.
    package enum Results: String, Sendable, Codable, CaseIterable {
        /// At any time.
        case live
        /// When the poll is over.
        case closed
    }

    /// A poll as a host requests it.
    package struct Draft: Equatable, Sendable {
        /// At most `questionLength` characters.
        package var question: String
        /// In the order in which pages show them; as many as `optionRange` permits, each with at most `optionLength`
        /// characters.
        package var options: [String]
        /// Whether several options may be chosen.
        package var isMultiple = false
        /// When others than hosts see the answers.
        ///
        /// Nil for the default: at any time, but for a quiz when it is over, because participants who wait would copy
        /// the others' choices.
        package var results: Results?
        /// For a quiz, the indices of the right options in `options`; nil for a poll without a right answer.
        package var right: [Int]?
        /// Seconds until it closes automatically; nil if the host closes it.
        package var seconds: Int?

        /// A poll with one choice, which the host closes.
        package init(question: String, options: [String]) {
            self.question = question
            self.options = options
        }
    }

    /// Counts from 1; unique in the stream.
    package let number: Int
    /// Cleaned like a comment.
    package let question: String
    /// Cleaned like comments; all different.
    package let options: [String]
    /// Whether several options may be chosen.
    package let isMultiple: Bool
    /// When others than hosts see the answers.
    package let results: Results
    /// By the server's clock.
    package let openedAt: WallTime
    /// When it closes automatically, by the server's clock; nil if the host closes it.
    package let closesAt: WallTime?
    /// When it was closed; nil while it is open.
    package internal(set) var closedAt: WallTime?
    /// How many participants chose each option.
    package internal(set) var counts: [Int]
    /// Participants who answered.
    package internal(set) var voters = 0
    /// Nil for a poll without a right answer; also nil in records from before there were quizzes.
    package internal(set) var quiz: Quiz?
    /// Each participant's choice while it is open; at most `voterLimit`.
    private var votes = VoteTable()

    /// Most characters of the question.
    package static let questionLength = 140
    /// Most characters of an option.
    package static let optionLength = 60
    /// Number of options.
    package static let optionRange = 2...6
    /// Seconds until it closes automatically: at most an hour.
    package static let secondsRange = 10...3_600
    /// Participants who may answer a poll.
    package static let voterLimit = 20_000

    /// Checks and cleans a host's request.
    /// - Throws: `.invalid` with the name of the first field that is out of range.
    init(_ draft: Draft, number: Int, at now: WallTime) throws(Interaction.Refusal) {
        self.number = number
        question = try Self.cleaned(draft.question, length: Self.questionLength, field: "question")
        guard Self.optionRange.contains(draft.options.count) else { throw .invalid("options") }
        var options: [String] = []
        for option in draft.options {
            options.append(try Self.cleaned(option, length: Self.optionLength, field: "options"))
        }
        guard Set(options).count == options.count else { throw .invalid("options") }
        if let seconds = draft.seconds, !Self.secondsRange.contains(seconds) { throw .invalid("seconds") }
        self.options = options
        isMultiple = draft.isMultiple
        results = draft.results ?? (draft.right == nil ? .live : .closed)
        if let right = draft.right {
            quiz = try Quiz(right: right, among: options.indices, isMultiple: draft.isMultiple)
        }
        openedAt = now
        closesAt = draft.seconds.map { now.advanced(bySeconds: $0) }
        counts = options.map { _ in 0 }
    }

    private static func cleaned(
        _ written: String, length: Int, field: String
    ) throws(Interaction.Refusal) -> String {
        guard let text = try? CommentText(written).text, text.count <= length else { throw .invalid(field) }
        return text
    }

    /// Whether it can still be answered, unless its time is over.
    package var isOpen: Bool { closedAt == nil }

    /// A participant's choice; nil if there is none, and after the poll was closed.
    package func vote(of id: ParticipantID) -> [Int]? { votes[id] }

    /// The poll as one participant is answered: with their own choice, and without those of others.
    ///
    /// A reply waits until a change is durable. Without those of others it stays small.
    func seen(by id: ParticipantID) -> Poll {
        var seen = self
        seen.votes = VoteTable()
        if let chosen = votes[id] { seen.votes.set(chosen, of: id) }
        return seen
    }

    /// Why a participant cannot choose these options; nil if it is possible.
    func refusal(of chosen: [Int], by id: ParticipantID, at now: WallTime) -> Interaction.Refusal? {
        guard isOpen, closesAt.map({ now < $0 }) ?? true else { return .pollClosed }
        guard !chosen.isEmpty, isMultiple || chosen.count == 1, Set(chosen).count == chosen.count,
            chosen.allSatisfy(options.indices.contains)
        else { return .invalid("options") }
        guard votes[id] == nil else { return .alreadyVoted }
        return votes.count < Self.voterLimit ? nil : .pollFull
    }

    /// Counts a choice that was checked by `refusal`.
    mutating func count(_ chosen: [Int], of id: ParticipantID) {
        votes.set(chosen, of: id)
        voters += 1
        quiz?.count(chosen)
        for option in chosen where counts.indices.contains(option) { counts[option] += 1 }
    }

    /// Closes the poll and forgets who chose what, except for a quiz's winners.
    mutating func close(at now: WallTime) {
        closedAt = now
        votes = VoteTable()
    }
}
