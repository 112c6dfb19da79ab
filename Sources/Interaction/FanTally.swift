import Base

/// What one minute is worth to those who took part in it: the points that make a fan.
///
/// Whoever is fast gets no more: each thing counts once a minute.
package struct FanMinute: Equatable, Sendable, Codable {
    /// What somebody got.
    package struct Points: Equatable, Sendable, Codable {
        /// Whose they are.
        package let id: ParticipantID
        /// For people; nil where they have none.
        package let name: String?
        /// At most the sum of all weights.
        package let points: Int
    }

    /// When it ended, by the server's clock.
    package let at: WallTime
    /// At most `limit`.
    package let people: [Points]

    /// People to whom one minute is worth something: those who did something first, then those who are fans already.
    package static let limit = 2_000
    /// Fans of a stream, and of a day, that are remembered; beyond, who has fewest points is forgotten.
    package static let fanLimit = 1_000
    /// To who is there when it ends.
    package static let watchWeight = 1
    /// To who wrote in it.
    package static let commentWeight = 2
    /// To who tapped in it.
    package static let reactionWeight = 1
}

/// Who does something in the minute that runs; a crash forgets it.
struct FanTally: Sendable {
    private struct Mark {
        var name: String?
        var hasWritten = false
        var hasTapped = false

        var points: Int {
            (hasWritten ? FanMinute.commentWeight : 0) + (hasTapped ? FanMinute.reactionWeight : 0)
        }
    }

    private var marks: [ParticipantID: Mark] = [:]
    /// Those of `marks`, in the order in which they came.
    private var order: [ParticipantID] = []

    /// Of the host nothing counts.
    mutating func noteComment(of person: Interaction.Person) {
        change(person) { $0.hasWritten = true }
    }

    /// Of the host nothing counts.
    mutating func noteTap(of person: Interaction.Person) {
        change(person) { $0.hasTapped = true }
    }

    private mutating func change(_ person: Interaction.Person, _ body: (inout Mark) -> Void) {
        guard person.role != .host else { return }
        if marks[person.id] == nil {
            guard order.count < FanMinute.limit else { return }
            order.append(person.id)
        }
        var mark = marks[person.id] ?? Mark()
        mark.name = person.name
        body(&mark)
        marks[person.id] = mark
    }

    /// Ends the minute, and begins another one.
    /// - Parameters:
    ///   - watching: who is there, each once, in an order that hashing does not decide.
    ///   - fans: who has points already.
    mutating func end(
        watching: [(id: ParticipantID, name: String?)], fans: RankTable
    ) -> [FanMinute.Points] {
        defer { (marks, order) = ([:], []) }
        let present = Set(watching.map(\.id))
        let active = order.compactMap { id in
            marks[id].map { mark in
                FanMinute.Points(
                    id: id, name: mark.name,
                    points: mark.points + (present.contains(id) ? FanMinute.watchWeight : 0))
            }
        }
        let others = watching.filter { marks[$0.id] == nil }
        let inOrder =
            others.filter { fans.entries[$0.id] != nil } + others.filter { fans.entries[$0.id] == nil }
        let quiet = inOrder.prefix(FanMinute.limit - active.count).map {
            FanMinute.Points(id: $0.id, name: $0.name, points: FanMinute.watchWeight)
        }
        return active + quiet
    }
}

extension Interaction {
    /// Ends a minute of those who take part.
    /// - Parameter watching: who is there without the host, each once, in an order that hashing does not decide.
    package mutating func endMinute(
        watching: [(id: ParticipantID, name: String?)], at now: WallTime
    ) -> [InteractionChange] {
        let people = tally.end(watching: watching, fans: record.fans.all)
        guard !people.isEmpty else { return [] }
        let change = InteractionChange.cheered(FanMinute(at: now, people: people))
        follow(change)
        return [change]
    }
}
