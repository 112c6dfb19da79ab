import Base
import Foundation
import TestSupport
import Testing

@testable import Interaction

/// Whatever two hosts do, and whatever the network, the clocks and the machines do to them: once messages come through
/// again, both sides say the same of every duel, and both are free.
@Suite struct DuelProperties {
    private let streams = [DuelRig.ann, DuelRig.bob]

    private func someCommand(
        on stream: StreamID, _ rig: DuelRig, _ random: inout SeededGenerator
    ) -> DuelSide.Command {
        let other = stream == DuelRig.ann ? DuelRig.bob : DuelRig.ann
        let known = rig[stream].durable.suffix(2).randomElement(using: &random)
        let id = known?.id ?? DuelID(inviter: other, number: 1)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<2:
            let penalty = Int.random(in: 0..<12, using: &random)
            return .invite(Bool.random(using: &random) ? other : stream, DuelRig.terms(penalty: penalty))
        case 2..<6: return .accept(id)
        case 6: return .decline(id)
        case 7: return .cancel(id)
        case 8: return .rematch(id)
        default: return Int.random(in: 0..<4, using: &random) == 0 ? .leave(id) : .accept(id)
        }
    }

    private func disturb(_ rig: inout DuelRig, _ random: inout SeededGenerator) {
        let stream = streams[Int.random(in: 0..<2, using: &random)]
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<25:
            // What is refused changes nothing.
            let before = rig[stream].durable
            do throws(Interaction.Refusal) {
                try rig.apply(someCommand(on: stream, rig, &random), on: stream)
            } catch {
                #expect(rig[stream].durable == before)
            }
        case 25..<60:
            let index = Int.random(in: 0..<6, using: &random)
            let isRepeated = Int.random(in: 0..<5, using: &random) == 0
            if let message = rig.takeMessage(at: index, isRepeated: isRepeated) { rig.receive(message) }
        case 60..<66: _ = rig.takeMessage(at: Int.random(in: 0..<6, using: &random))
        case 66..<92:
            rig.elapsed = rig.elapsed + .milliseconds(Int.random(in: 0..<2_500, using: &random))
            if Bool.random(using: &random) { rig.advance(stream) }
        case 92..<95: rig.restart(stream)
        case 95..<97: rig[stream].situation.isHostThere.toggle()
        default:
            rig[stream].situation.tally.gifts += Int.random(in: 0..<300, using: &random)
            rig[stream].situation.tally.reactions += Int.random(in: 0..<30, using: &random)
        }
    }

    @Test(arguments: 0..<200)
    func `end in agreement, and both are free`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var rig = DuelRig()
        rig[DuelRig.bob].skew = Int64.random(in: -200...200, using: &random)
        for _ in 0..<600 { disturb(&rig, &random) }
        for stream in streams { rig[stream].situation.isHostThere = true }
        rig.wait(.seconds(150), step: .milliseconds(500))
        for stream in streams {
            #expect([.off, .over, nil].contains(rig.phase(stream)), "\(stream) is not free")
            #expect(rig[stream].durable.count <= DuelSide.limit)
        }
        let (ann, bob) = (rig[DuelRig.ann].durable, rig[DuelRig.bob].durable)
        for duel in ann {
            guard let same = bob.first(where: { $0.id == duel.id }) else {
                // Refused without being remembered, or forgotten after many others.
                if bob.count < DuelSide.limit { #expect(isCalledOff(duel), "\(duel)") }
                continue
            }
            #expect(isCalledOff(duel) == isCalledOff(same))
            guard !isCalledOff(duel) else { continue }
            #expect(duel.result == same.result)
            #expect(duel.sides == same.sides, "each has the other's last word")
        }
        let coder = (JSONEncoder(), JSONDecoder())
        #expect(try coder.1.decode([Duel].self, from: coder.0.encode(ann)) == ann)
    }

    private func isCalledOff(_ duel: Duel) -> Bool {
        if case .calledOff = duel.result { true } else { false }
    }
}
