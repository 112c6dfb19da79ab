import Base
import Foundation
import TestSupport
import Testing

@testable import Interaction

@Suite struct Gifts {
    private var rig = InteractionRig()

    init() throws {
        try rig.edit { $0.gifts = InteractionRig.catalogue }
    }

    @Test mutating func `are the same for the same key, and another is refused`() throws {
        let rose = try rig.give(InteractionRig.gift("k1", count: 3))
        #expect(rose.number == 1 && rose.combo == 3 && rose.name == "BOB")
        rig.wait(.seconds(60))
        #expect(try rig.give(InteractionRig.gift("k1", count: 3)) == rose)
        #expect(rig.log.count == 2, "the catalogue and one gift")
        for other in [
            InteractionRig.gift("k1", count: 4), InteractionRig.gift("k1", from: "cid", count: 3),
            InteractionRig.gift("k1", "car", count: 3), InteractionRig.gift("k1", count: 3, price: 99),
        ] {
            #expect(throws: Interaction.Refusal.giftKeyReused) { try rig.give(other) }
        }
        // After the catalogue has changed it is still the same.
        try rig.edit { $0.gifts = GiftCatalogue(currency: "EUR", kinds: []) }
        #expect(rig.machine.record.settings.gifts == nil)
        #expect(try rig.give(InteractionRig.gift("k1", count: 3)) == rose)
        #expect(throws: Interaction.Refusal.unknownGift) { try rig.give(InteractionRig.gift("k2")) }
    }

    @Test mutating func `count up within five seconds of the last of their kind by their giver`() throws {
        #expect(try rig.give(InteractionRig.gift("k1", count: 2)).combo == 2)
        rig.wait(.seconds(5))
        #expect(try rig.give(InteractionRig.gift("k2")).combo == 3)
        #expect(try rig.give(InteractionRig.gift("k3", from: "cid")).combo == 1)
        #expect(try rig.give(InteractionRig.gift("k4", "car", price: 5_000)).combo == 1)
        #expect(try rig.give(InteractionRig.gift("k5")).combo == 4)
        rig.wait(.milliseconds(5_001))
        #expect(try rig.give(InteractionRig.gift("k6")).combo == 1)
    }

    @Test mutating func `are taken of shops only, as fast as they come`() throws {
        for person in [InteractionRig.bob, InteractionRig.ann] {
            #expect(throws: Interaction.Refusal.notShop) {
                try rig.apply(.give(InteractionRig.gift("k0")), from: person)
            }
        }
        for number in 1...500 { try rig.give(InteractionRig.gift("k\(number)")) }
        #expect(rig.machine.record.gifts.lastNumber == 500)
    }

    @Test(arguments: [
        (InteractionRig.gift("k 1"), Interaction.Refusal.invalid("key")),
        (InteractionRig.gift(""), .invalid("key")),
        (InteractionRig.gift(String(repeating: "k", count: 65)), .invalid("key")),
        (InteractionRig.gift("k1", count: 0), .invalid("count")),
        (InteractionRig.gift("k1", count: -1), .invalid("count")),
        (InteractionRig.gift("k1", count: 10_001), .invalid("count")),
        (InteractionRig.gift("k1", count: .max), .invalid("count")),
        (InteractionRig.gift("k1", count: .min), .invalid("count")),
        (InteractionRig.gift("k1", price: -1), .invalid("price")),
        (InteractionRig.gift("k1", price: .max), .invalid("price")),
        (InteractionRig.gift("k1", "boat"), .unknownGift),
        (
            Gift.Draft(
                key: "k1", giver: InteractionRig.bob.id, name: nil, kind: "rose", count: 1, price: 1,
                currency: "USD"), .otherCurrency("EUR")
        ),
        (
            Gift.Draft(
                key: "k1", giver: InteractionRig.bob.id, name: "\u{202E}", kind: "rose", count: 1, price: 1,
                currency: "EUR"), .invalid("name")
        ),
    ])
    mutating func `that make no sense are refused`(draft: Gift.Draft, refusal: Interaction.Refusal) {
        let before = rig.machine.record
        #expect(throws: refusal) { try rig.give(draft) }
        #expect(rig.machine.record == before)
    }

    @Test(arguments: [
        ("eur", "rose", "Rose", "🌹", 1), ("", "rose", "Rose", "🌹", 1), ("EUR", "Rose", "Rose", "🌹", 1),
        ("EUR", "rose", "", "🌹", 1), ("EUR", "rose", "Ro\u{202E}se", "🌹", 1), ("EUR", "rose", "Rose", "", 1),
        ("EUR", "rose", "Rose", "http://a.example/rose.png", 1), ("EUR", "rose", "Rose", "//a.example/x", 1),
        ("EUR", "rose", "Rose", "javascript:alert(1)", 1), ("EUR", "rose", "Rose", "https://a/\"onerror=", 1),
        ("EUR", "rose", "Rose", "🌹🌹🌹", 1), ("EUR", "rose", "Rose", "🌹", -1),
        ("EUR", "rose", "Rose", "🌹", 100_000_001),
    ])
    mutating func `have a catalogue that pages can show`(
        currency: String, id: String, name: String, picture: String, price: Int
    ) {
        let kind = GiftCatalogue.Kind(id: id, name: name, picture: picture, price: price)
        #expect(throws: Interaction.Refusal.invalid("gifts")) {
            try rig.edit { $0.gifts = GiftCatalogue(currency: currency, kinds: [kind]) }
        }
    }

    @Test mutating func `stay in one currency`() throws {
        var coins = InteractionRig.catalogue
        coins.currency = "COINS"
        try rig.edit { $0.gifts = coins }
        try rig.edit { $0.gifts = InteractionRig.catalogue }
        try rig.give(InteractionRig.gift("k1"))
        #expect(throws: Interaction.Refusal.otherCurrency("EUR")) { try rig.edit { $0.gifts = coins } }
    }

    @Test mutating func `of more givers than are remembered forget who gave least`() throws {
        for number in 0..<GiftTotals.giverLimit + 50 {
            try rig.give(InteractionRig.gift("k\(number)", from: "g\(number)", price: 1_000 + number))
        }
        let gifts = rig.machine.record.gifts
        #expect(gifts.givers.all.entries.count == GiftTotals.giverLimit)
        #expect(gifts.givers.all.top(1).first?.id == InteractionRig.person("g2049").id)
        #expect(gifts.givers.all.entries[InteractionRig.person("g0").id] == nil)
        #expect(gifts.count == GiftTotals.giverLimit + 50, "sums are of all")
    }

    /// Whatever is given, by whomever, again and again: sums, combos and ranks are those that a plain list of the gifts
    /// gives.
    @Test(arguments: 0..<40)
    mutating func `add up`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var ledger: [Gift] = []
        for step in 0..<700 {
            rig.wait(
                .milliseconds(
                    Int.random(in: 0..<4_000, using: &random) * Int.random(in: 0...2, using: &random)))
            let isRepeated = Int.random(in: 0..<5, using: &random) == 0
            if isRepeated, let known = ledger.suffix(GiftTotals.recentLimit).randomElement(using: &random) {
                let draft = Gift.Draft(
                    key: known.key, giver: known.giver, name: known.name, kind: known.kind,
                    count: known.count,
                    price: known.price, currency: known.currency)
                #expect(try rig.give(draft) == known)
                continue
            }
            let draft = InteractionRig.gift(
                "k\(step)", from: "g\(Int.random(in: 0..<6, using: &random))",
                Bool.random(using: &random) ? "rose" : "car", count: Int.random(in: 1...4, using: &random),
                price: Int.random(in: 0..<300, using: &random))
            let gift = try rig.give(draft)
            #expect(gift.number == ledger.count + 1)
            let last = ledger.last { $0.giver == gift.giver && $0.kind == gift.kind }
            let isInTime = last.map { gift.at.milliseconds - $0.at.milliseconds <= 5_000 } ?? false
            #expect(gift.combo == gift.count + (isInTime ? last?.combo ?? 0 : 0))
            ledger.append(gift)
        }
        let gifts = rig.machine.record.gifts
        #expect(gifts.count == ledger.reduce(0) { $0 + $1.count })
        #expect(gifts.value == ledger.reduce(0) { $0 + $1.count * $1.price })
        #expect(gifts.recent == Array(ledger.suffix(gifts.recent.count)))
        #expect(gifts.recent.count >= min(ledger.count, GiftTotals.recentLimit))
        let values = Dictionary(grouping: ledger, by: \.giver).mapValues {
            $0.reduce(0) { $0 + $1.count * $1.price }
        }
        let top = gifts.givers.all.top(10)
        #expect(Dictionary(uniqueKeysWithValues: top.map { ($0.id, $0.value) }) == values)
        #expect(top.map(\.value) == values.values.sorted(by: >))
        // What a restart reads is the same, from the log and from a snapshot.
        var again = InteractionRecord()
        for change in rig.log { again.apply(change) }
        #expect(again == rig.machine.record)
        let bytes = try JSONEncoder().encode(again)
        #expect(try JSONDecoder().decode(InteractionRecord.self, from: bytes) == again)
    }
}
