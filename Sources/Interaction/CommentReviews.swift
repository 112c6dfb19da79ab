import Base

/// A comment that keeps to its stream's rules, and that nobody was shown so far.
package struct CommentDraft: Equatable, Sendable {
    /// By which the author's client knows it.
    package let key: String
    /// Who wrote it, and what they were then.
    package let person: Interaction.Person
    /// Cleaned.
    package let text: String
}

/// Comments of which somebody outside has yet to say whether they may be shown: they are let go in the order in which
/// they came, whatever the order of the answers.
///
/// Asks nobody and knows no time: that each gets its answer soon is up to whoever asks.
package struct CommentReviews: Sendable {
    /// One of which it was said whether it may be shown.
    package struct Judged: Equatable, Sendable {
        /// As `append` named it.
        package let number: Int
        package let draft: CommentDraft
        package let isShown: Bool
    }

    private struct Entry: Sendable {
        let number: Int
        let draft: CommentDraft
        /// Nil while nothing was said.
        var isShown: Bool?
    }

    /// That wait at once; with a fifth of a second for each, more than a thousand a second get through.
    package static let limit = 256

    private var entries: [Entry] = []
    private var next = 1

    /// What waits under a client's name for it; nil for nothing.
    func number(of author: ParticipantID, key: String) -> Int? {
        entries.first { $0.draft.key == key && $0.draft.person.id == author }?.number
    }

    var isFull: Bool { entries.count >= Self.limit }

    /// - Returns: its name until it is let go.
    mutating func append(_ draft: CommentDraft) -> Int {
        defer { next += 1 }
        entries.append(Entry(number: next, draft: draft))
        return next
    }

    /// Notes what was said of one; one that does not wait any more is not looked at.
    /// - Returns: those that go now, in order.
    mutating func judge(_ number: Int, isShown: Bool) -> [Judged] {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return [] }
        if entries[index].isShown == nil { entries[index].isShown = isShown }
        let judged = entries.prefix { $0.isShown != nil }.map {
            Judged(number: $0.number, draft: $0.draft, isShown: $0.isShown ?? false)
        }
        entries.removeFirst(judged.count)
        return judged
    }
}
