import Base
import Testing

@testable import Interaction

/// An audience, and a clock that is moved by hand.
struct InteractionRig {
    var machine = Interaction()
    var now = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000))
    /// All changes so far.
    var log: [InteractionChange] = []
    private var nextKey = 1

    static let ann = person("ann", .host, isModerator: true)
    static let bob = person("bob")
    static let mod = person("mod", mayModerate: true)
    static let shop = person("shop", isShop: true)

    static func person(
        _ name: String, _ role: StreamComment.Role = .viewer, isModerator: Bool = false,
        mayModerate: Bool = false, isShop: Bool = false, tiers: Set<String> = []
    ) -> Interaction.Person {
        guard let id = ParticipantID(name) else { preconditionFailure("\(name) is no identity") }
        return Interaction.Person(
            id: id, name: name.uppercased(), role: role, isModerator: isModerator, mayModerate: mayModerate,
            isShop: isShop, tiers: tiers)
    }

    static let catalogue = GiftCatalogue(
        currency: "EUR",
        kinds: [
            GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 100),
            GiftCatalogue.Kind(id: "car", name: "Fast car", picture: "/pictures/car.png", price: 5_000),
        ])

    static func gift(
        _ key: String, from giver: String = "bob", _ kind: String = "rose", count: Int = 1, price: Int = 100
    ) -> Gift.Draft {
        Gift.Draft(
            key: key, giver: person(giver).id, name: giver.uppercased(), kind: kind, count: count,
            price: price,
            currency: "EUR")
    }

    @discardableResult
    mutating func give(_ draft: Gift.Draft) throws(Interaction.Refusal) -> Gift {
        guard case .gift(let gift) = try apply(.give(draft), from: Self.shop).reply else {
            throw .unknownGift
        }
        return gift
    }

    @discardableResult
    mutating func apply(
        _ command: Interaction.Command, from person: Interaction.Person = bob
    ) throws(Interaction.Refusal) -> Interaction.Outcome {
        let outcome = try machine.apply(command, from: person, at: now)
        log += outcome.changes
        return outcome
    }

    /// Writes a comment under a key that was not used before.
    @discardableResult
    mutating func write(
        _ text: String = "hello", from person: Interaction.Person = bob
    ) throws(Interaction.Refusal) -> StreamComment {
        nextKey += 1
        let outcome = try apply(.comment(key: "k\(nextKey)", text: text), from: person)
        guard case .comment(let comment) = outcome.reply else { throw .unknownComment }
        return comment
    }

    mutating func edit(_ body: (inout InteractionEdit) -> Void) throws(Interaction.Refusal) {
        var edit = InteractionEdit()
        body(&edit)
        try apply(.edit(edit), from: Self.ann)
    }

    mutating func wait(_ duration: Duration) {
        now = Moment(
            elapsed: now.elapsed + duration,
            wall: WallTime(milliseconds: now.wall.milliseconds + duration.wholeNanoseconds / 1_000_000))
    }
}
