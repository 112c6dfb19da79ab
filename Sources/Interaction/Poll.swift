import Base

/// A question that a host puts to the audience, and what it answered so far.
package struct Poll: Equatable, Sendable, Codable {
    /// When others see how many chose what.
    package enum Results: String, Sendable, Codable, CaseIterable {
        case live
        /// When it is over.
        case closed
    }

    /// What a host wants to ask.
    package struct Draft: Equatable, Sendable {
        /// In characters, at most `questionLength`.
        package var question: String
        /// In the order in which pages show them; within `optionRange`, each at most `optionLength` characters.
        package var options: [String]
        /// Whether somebody may choose more than one.
        package var isMultiple = false
        /// When others see the answers; hosts always do.
        ///
        /// Nil for at once, and of a quiz for when it is over: else those who wait would choose as the others did.
        package var results: Results?
        /// Of a quiz, the places of the right options in `options`; nil for a poll that has no right answer.
        package var right: [Int]?
        /// Until it closes by itself; nil for when the host closes it.
        package var seconds: Int?

        package init(question: String, options: [String]) {
            self.question = question
            self.options = options
        }
    }

    /// From 1 on; no two of a stream have the same.
    package let number: Int
    /// Cleaned, as comments are.
    package let question: String
    /// Cleaned; different from each other.
    package let options: [String]
    /// Whether somebody may choose more than one.
    package let isMultiple: Bool
    /// When others see the answers.
    package let results: Results
    /// By the server's clock.
    package let openedAt: WallTime
    /// By the server's clock; nil for when the host closes it.
    package let closesAt: WallTime?
    /// Nil while it is open.
    package internal(set) var closedAt: WallTime?
    /// How many chose each option.
    package internal(set) var counts: [Int]
    /// People who answered.
    package internal(set) var voters = 0
    /// Nil for a poll that has no right answer, as there were no others once.
    package internal(set) var quiz: Quiz?
    /// What each chose, while it is open; at most `voterLimit`.
    private var votes: [ParticipantID: [Int]] = [:]

    /// In characters.
    package static let questionLength = 140
    /// In characters.
    package static let optionLength = 60
    /// How many options there may be.
    package static let optionRange = 2...6
    /// In seconds: at most an hour.
    package static let secondsRange = 10...3_600
    /// People who may answer one.
    package static let voterLimit = 20_000

    /// - Throws: `.invalid`, naming the first field that is out of its range.
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

    package var isOpen: Bool { closedAt == nil }

    /// What somebody chose, as long as it is open.
    package func vote(of id: ParticipantID) -> [Int]? { votes[id] }

    /// Why somebody cannot choose these; nil where they can.
    func refusal(of chosen: [Int], by id: ParticipantID, at now: WallTime) -> Interaction.Refusal? {
        guard isOpen, closesAt.map({ now < $0 }) ?? true else { return .pollClosed }
        guard !chosen.isEmpty, isMultiple || chosen.count == 1, Set(chosen).count == chosen.count,
            chosen.allSatisfy(options.indices.contains)
        else { return .invalid("options") }
        guard votes[id] == nil else { return .alreadyVoted }
        return votes.count < Self.voterLimit ? nil : .pollFull
    }

    mutating func count(_ chosen: [Int], of id: ParticipantID) {
        votes[id] = chosen
        voters += 1
        quiz?.count(chosen)
        for option in chosen where counts.indices.contains(option) { counts[option] += 1 }
    }

    /// Who chose what is not remembered beyond it, but for a quiz's winners.
    mutating func close(at now: WallTime) {
        closedAt = now
        votes = [:]
    }
}
