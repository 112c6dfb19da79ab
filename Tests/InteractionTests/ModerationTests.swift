import Base
import Foundation
import Testing

@testable import Interaction

@Suite struct Moderation {
    private var rig = InteractionRig()
    private let ann = InteractionRig.ann
    private let bob = InteractionRig.bob
    private let mod = InteractionRig.mod

    @Test mutating func `lets moderators take away, silence and pin, and no more`() throws {
        let comment = try rig.write("one")
        try rig.apply(.pin(comment.number), from: mod)
        try rig.apply(.unpin, from: mod)
        try rig.apply(.silence(bob.id, seconds: 60), from: mod)
        try rig.apply(.unsilence(bob.id), from: mod)
        try rig.apply(.delete(comment.number), from: mod)
        let ofHost = try rig.write("two", from: ann)
        for command in [
            Interaction.Command.delete(ofHost.number), .edit(InteractionEdit()), .closePoll(1), .removeCard,
            .openPoll(Poll.Draft(question: "?!a", options: ["a", "b"])),
            .showCard(StreamCard(title: "x", link: "https://a.example", picture: nil, data: nil)),
        ] {
            #expect(throws: Interaction.Refusal.notModerator) { try rig.apply(command, from: mod) }
        }
        #expect(throws: Interaction.Refusal.moderatorSpeaks) {
            try rig.apply(.silence(mod.id, seconds: 9), from: mod)
        }
        // A host silences moderators too.
        try rig.apply(.silence(mod.id, seconds: 60), from: ann)
        #expect(throws: Interaction.Refusal.silenced(wait: 60)) { try rig.write("x", from: mod) }
        #expect(throws: Interaction.Refusal.notModerator) { try rig.apply(.unsilence(mod.id), from: mod) }
    }

    @Test mutating func `remembers who did what to whom`() throws {
        let comment = try rig.write(String(repeating: "a", count: 150))
        try rig.apply(.pin(comment.number), from: mod)
        try rig.apply(.pin(comment.number), from: mod)
        try rig.apply(.silence(bob.id, seconds: 60, isShadow: true), from: ann)
        try rig.apply(.delete(comment.number), from: mod)
        let own = try rig.write("mine", from: mod)
        try rig.apply(.delete(own.number), from: mod)
        let audit = Array(rig.machine.record.audit)
        #expect(
            audit.map(\.action) == [.pinned, .shadowed, .deleted], "one's own comment is one's own matter")
        #expect(audit.map(\.by) == [mod.id, ann.id, mod.id])
        #expect(audit.map(\.participant) == [bob.id, bob.id, bob.id])
        #expect(
            audit.last?.text == String(repeating: "a", count: 100) && audit.last?.comment == comment.number)
        #expect(audit[1].until == rig.now.wall.advanced(bySeconds: 60))
    }

    @Test mutating func `remembers no more than it may`() throws {
        for number in 0..<600 {
            rig.wait(.seconds(5))
            let card = StreamCard(title: "\(number)", link: "https://a.example", picture: nil, data: nil)
            try rig.apply(.showCard(card), from: ann)
            #expect(rig.machine.record.audit.count <= AuditEntry.limit)
        }
        #expect(rig.machine.record.audit.count == AuditEntry.limit)
        #expect(rig.machine.record.audit.last?.text == "599")
        #expect(rig.machine.record.audit.first?.text == "400")
    }

    @Test mutating func `shows what somebody writes to nobody else, without their knowing`() throws {
        try rig.apply(.silence(bob.id, seconds: 60, isShadow: true), from: mod)
        let hidden = try rig.write("psst")
        #expect(hidden.isHidden && hidden.text == "psst")
        let seen = try rig.write("hello", from: ann)
        let record = rig.machine.record
        #expect(record.page(limit: 9).comments == [seen])
        #expect(record.page(limit: 9, for: ann.id).comments == [seen])
        #expect(record.page(limit: 9, for: bob.id).comments == [hidden, seen])
        #expect(throws: Interaction.Refusal.unknownComment) { try rig.apply(.pin(hidden.number), from: ann) }
        rig.wait(.seconds(60))
        #expect(try !rig.write("again").isHidden)
        // The one takes the place of the other.
        try rig.apply(.silence(bob.id, seconds: 60, isShadow: true), from: mod)
        try rig.apply(.silence(bob.id, seconds: 60), from: mod)
        #expect(rig.machine.record.shadowed.isEmpty)
        try rig.apply(.silence(bob.id, seconds: 60, isShadow: true), from: mod)
        #expect(rig.machine.record.silenced.isEmpty && rig.machine.record.shadowed.keys.contains(bob.id))
        try rig.apply(.unsilence(bob.id), from: mod)
        #expect(rig.machine.record.shadowed.isEmpty)
        #expect(throws: Interaction.Refusal.notSilenced) { try rig.apply(.unsilence(bob.id), from: mod) }
    }

    @Test mutating func `is there again after a restart`() throws {
        try rig.apply(.silence(bob.id, seconds: 60, isShadow: true), from: mod)
        try rig.write("psst")
        let card = StreamCard(title: "x", link: "https://a.example", picture: nil, data: .array([.number(1)]))
        try rig.apply(.showCard(card), from: ann)
        var again = InteractionRecord()
        for change in rig.log {
            again.apply(try JSONDecoder().decode(InteractionChange.self, from: JSONEncoder().encode(change)))
        }
        #expect(again == rig.machine.record)
        let bytes = try JSONEncoder().encode(again)
        #expect(try JSONDecoder().decode(InteractionRecord.self, from: bytes) == again)
    }
}
