import Base

/// The points of all participants for one minute; they decide who is a fan.
///
/// Doing something more often yields no more points: each kind of activity counts once a minute.
package struct FanMinute: Equatable, Sendable, Codable {
    /// The points of one participant.
    package struct Points: Equatable, Sendable, Codable {
        /// The participant.
        package let id: ParticipantID
        /// Display name; nil if there is none.
        package let name: String?
        /// At most the sum of all weights.
        package let points: Int
    }

    /// The end of the minute, by the server's clock.
    package let at: WallTime
    /// At most `limit` participants.
    package let people: [Points]

    /// Participants who can get points for one minute: first those who were active, then those who are fans already.
    package static let limit = 2_000
    /// Fans remembered per stream and per day; beyond that the one with the fewest points is dropped.
    package static let fanLimit = 1_000
    /// Points for being present at the end of the minute.
    package static let watchWeight = 1
    /// Points for writing a comment during the minute.
    package static let commentWeight = 2
    /// Points for tapping a reaction during the minute.
    package static let reactionWeight = 1
}

/// Who was active in the current minute; not durable, so a crash loses it.
struct FanTally: Sendable {
    /// What one participant has done.
    private struct Mark {
        var name: String?
        var hasWritten = false
        var hasTapped = false

        var points: Int {
            (hasWritten ? FanMinute.commentWeight : 0) + (hasTapped ? FanMinute.reactionWeight : 0)
        }
    }

    private var marks: [ParticipantID: Mark] = [:]
    /// The keys of `marks` in the order of their first activity, since a dictionary has none.
    private var order: [ParticipantID] = []

    /// Records a comment; hosts get no points.
    mutating func noteComment(of person: Interaction.Person) {
        change(person) { $0.hasWritten = true }
    }

    /// Records a tap; hosts get no points.
    mutating func noteTap(of person: Interaction.Person) {
        change(person) { $0.hasTapped = true }
    }

    /// Changes a participant's mark, unless it would be one too many.
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

    /// Ends the minute, and starts the next.
    /// - Parameters:
    ///   - watching: participants who are present, each once, in an order that does not depend on hashing.
    ///   - fans: who has points already, and so has precedence if there are too many.
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
        // The places that are left go to participants who only watch, fans first.
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
    /// Ends a minute, and turns its points into a change.
    /// - Parameter watching: participants who are present, without the host, each once, in an order that does not
    ///   depend on hashing.
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
