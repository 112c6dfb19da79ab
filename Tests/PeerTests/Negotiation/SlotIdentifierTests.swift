import Base
import Peer
import Testing
import Wire

/// A source of randomness that has broken down.
private struct StuckGenerator: RandomNumberGenerator {
    let value: UInt64

    mutating func next() -> UInt64 { value }
}

@Suite struct `The SSRCs of slots` {
    private func plan(_ name: String, _ purpose: SessionOffer.Purpose, value: UInt64) throws -> SessionPlan {
        let offer = try SessionOffer(NegotiationFixture.offer(name), for: purpose)
        var random = StuckGenerator(value: value)
        let answered = try Negotiator().answer(to: offer, as: NegotiationFixture.transport, using: &random)
        return answered.plan
    }

    private func ssrcs(of plan: SessionPlan) -> [UInt32] {
        plan.slots.flatMap { slot -> [UInt32] in
            guard let repair = slot.repairSSRC else { return [slot.ssrc] }
            return [slot.ssrc, repair]
        }
    }

    /// 0 stands for no SSRC, and above the largest number there is none.
    @Test(arguments: [0, .max, 0xFFFF_FFFE_0000_0000, 1 << 32] as [UInt64])
    func `differ even if all random numbers are the same`(value: UInt64) throws {
        let found = ssrcs(of: try plan("chrome-play", .play, value: value))
        // Sound, and pictures with their repair.
        #expect(found.count >= 3)
        #expect(Set(found).count == found.count)
        #expect(!found.contains(0))
    }

    @Test func `differ from those that the client announced`() throws {
        let before = try plan("firefox-stage", .stage, value: 0)
        let announced = before.sources.flatMap(\.announced).flatMap { source -> [UInt32] in
            guard let repair = source.repairSSRC else { return [source.ssrc] }
            return [source.ssrc, repair]
        }
        #expect(!announced.isEmpty)
        for ssrc in announced {
            // The first number drawn is taken.
            let found = ssrcs(of: try plan("firefox-stage", .stage, value: UInt64(ssrc) << 32))
            #expect(!found.isEmpty)
            #expect(Set(found).isDisjoint(with: announced))
        }
    }
}
