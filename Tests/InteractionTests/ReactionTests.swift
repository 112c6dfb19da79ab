import Base
import Testing

@testable import Interaction

@Suite struct Reactions {
    private var rig = InteractionRig()

    @Test mutating func `are counted as far as a person can tap`() throws {
        #expect(try rig.apply(.react(["heart": 12])).reply == .counted(12))
        #expect(try rig.apply(.react(["heart": .max])).reply == .counted(28))
        #expect(try rig.apply(.react(["heart": 1])).reply == .counted(0))
        rig.wait(.seconds(1))
        #expect(try rig.apply(.react(["heart": 30])).reply == .counted(20))
        #expect(rig.machine.counter.totals == ["heart": 60])
    }

    @Test mutating func `have kinds that the host chose`() throws {
        #expect(throws: Interaction.Refusal.unknownReaction) { try rig.apply(.react(["fire": 1])) }
        for taps in [[:], ["heart": 0], ["heart": -3]] {
            #expect(throws: Interaction.Refusal.invalid("reactions")) { try rig.apply(.react(taps)) }
        }
        try rig.edit { $0.reactions = ["fire", "heart"] }
        #expect(try rig.apply(.react(["fire": 25, "heart": 25])).reply == .counted(40))
        #expect(rig.machine.counter.totals == ["fire": 25, "heart": 15])
        try rig.edit { $0.reactions = ["heart"] }
        #expect(rig.machine.counter.totals == ["heart": 15])
    }

    @Test mutating func `are told at once, and then at most twice a second`() throws {
        #expect(rig.machine.counter.deadline == nil)
        try rig.apply(.react(["heart": 5]))
        #expect(rig.machine.counter.deadline == .zero)
        #expect(rig.machine.tellReactions(at: rig.now.elapsed) == ["heart": .init(total: 5, rate: 5)])
        rig.wait(.milliseconds(100))
        try rig.apply(.react(["heart": 5]))
        #expect(rig.machine.tellReactions(at: rig.now.elapsed) == nil)
        rig.wait(.milliseconds(400))
        #expect(rig.machine.tellReactions(at: rig.now.elapsed) == ["heart": .init(total: 10, rate: 10)])
        // That nobody taps any more is told once.
        rig.wait(.milliseconds(999))
        #expect(rig.machine.tellReactions(at: rig.now.elapsed) == nil)
        rig.wait(.milliseconds(1))
        #expect(rig.machine.tellReactions(at: rig.now.elapsed) == ["heart": .init(total: 10, rate: 0)])
        rig.wait(.seconds(9))
        #expect(rig.machine.tellReactions(at: rig.now.elapsed) == nil)
    }

    @Test mutating func `are written down every five seconds, and at the end`() throws {
        try rig.apply(.react(["heart": 5]))
        #expect(rig.machine.saveReactions(at: rig.now.elapsed) == [.counted(["heart": 5])])
        try rig.apply(.react(["heart": 5]))
        rig.wait(.milliseconds(4_999))
        #expect(rig.machine.saveReactions(at: rig.now.elapsed).isEmpty)
        rig.wait(.milliseconds(1))
        #expect(rig.machine.saveReactions(at: rig.now.elapsed) == [.counted(["heart": 10])])
        #expect(rig.machine.saveReactions(at: rig.now.elapsed, isLast: true).isEmpty)
        try rig.apply(.react(["heart": 1]))
        #expect(rig.machine.saveReactions(at: rig.now.elapsed, isLast: true) == [.counted(["heart": 11])])
        #expect(Interaction(restoring: rig.machine.record).counter.totals == ["heart": 11])
    }

    @Test mutating func `that could not be written are tried again`() throws {
        let before = rig.machine.record
        try rig.apply(.react(["heart": 5]))
        #expect(rig.machine.saveReactions(at: rig.now.elapsed).count == 1)
        rig.machine.revert(to: before)
        rig.wait(.seconds(5))
        #expect(rig.machine.saveReactions(at: rig.now.elapsed) == [.counted(["heart": 5])])
    }

    @Test mutating func `of a kind whose removal could not be written are there again`() throws {
        try rig.edit { $0.reactions = ["fire", "heart"] }
        try rig.apply(.react(["fire": 25, "heart": 15]))
        _ = rig.machine.saveReactions(at: rig.now.elapsed)
        let before = rig.machine.record
        try rig.edit { $0.reactions = ["heart"] }
        rig.machine.revert(to: before)
        #expect(rig.machine.counter.totals == ["fire": 25, "heart": 15])
        #expect(rig.machine.counter.taps == 40)
        let unsaved = rig.machine.saveReactions(at: rig.now.elapsed, isLast: true)
        #expect(unsaved.isEmpty)
    }
}
