import Base

/// A comment that complies with its stream's rules and was not shown to anyone yet.
package struct CommentDraft: Equatable, Sendable {
    /// The author's client's own name for it.
    package let key: String
    /// The author, with role and rights at the time of writing.
    package let person: Interaction.Person
    /// Cleaned, see `CommentText`.
    package let text: String
}

/// Comments that wait for an external decision whether they may be shown.
///
/// They are released in the order in which they were submitted, whatever the order of the decisions. This type sends
/// no requests and knows no time: its owner sees to it that each comment is decided soon.
package struct CommentReviews: Sendable {
    /// A comment about which the decision was made.
    package struct Judged: Equatable, Sendable {
        /// As `append` returned it.
        package let number: Int
        /// The comment itself.
        package let draft: CommentDraft
        /// The decision.
        package let isShown: Bool
    }

    private struct Entry: Sendable {
        let number: Int
        let draft: CommentDraft
        /// Nil until the decision is made.
        var isShown: Bool?
    }

    /// Comments that may wait at the same time; if each takes a fifth of a second, more than a thousand pass per
    /// second.
    package static let limit = 256

    private var entries: [Entry] = []
    private var next = 1

    /// The number of a waiting comment by its author's name for it; nil if none waits.
    func number(of author: ParticipantID, key: String) -> Int? {
        entries.first { $0.draft.key == key && $0.draft.person.id == author }?.number
    }

    /// Whether no further comment can wait.
    var isFull: Bool { entries.count >= Self.limit }

    /// Adds a comment.
    /// - Returns: the number by which it is decided.
    mutating func append(_ draft: CommentDraft) -> Int {
        defer { next += 1 }
        entries.append(Entry(number: next, draft: draft))
        return next
    }

    /// Records a decision; ignores a number that does not wait any more.
    /// - Returns: the comments that are released now, in order.
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
