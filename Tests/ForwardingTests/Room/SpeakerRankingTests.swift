import Base
import Forwarding
import TestSupport
import Testing

@Suite struct SpeakerRankings {
    private var ranking = SpeakerRanking()
    private var now = MonotonicTime.zero
    private let ids: [SessionID]
    private let loud: UInt8 = 100

    init() {
        var random = SeededGenerator(seed: 6_464)
        ids = (0..<12).map { _ in SessionID(using: &random) }
        for id in ids { ranking.add(id) }
        ranking.advance(to: now)
    }

    private mutating func pass(_ milliseconds: Int64) {
        for _ in 0..<(milliseconds / 100) {
            now = now + .milliseconds(100)
            ranking.advance(to: now)
        }
    }

    @Test mutating func `the ranking is the order of arrival while nobody speaks`() {
        pass(5_000)
        #expect(ranking.loudest == ids)
        #expect(ranking.latest == ids)
    }

    @Test mutating func `a speaker is first within a second`() {
        ranking.note(loud, of: ids[9])
        pass(800)
        #expect(ranking.loudest.first == ids[9])
        #expect(ranking.latest.first == ids[9])
        #expect(ranking.isSpeaking(ids[9]))
    }

    @Test mutating func `the ranking does not change for a cough or for noise`() {
        ranking.note(110, of: ids[5])
        pass(200)
        ranking.note(0, of: ids[5])
        ranking.note(70, of: ids[6])
        pass(5_000)
        #expect(ranking.latest == ids)
        #expect(ranking.loudest.first != ids[6])
    }

    @Test mutating func `only a clearly louder speaker passes one who speaks`() {
        ranking.note(95, of: ids[0])
        pass(1_000)
        ranking.note(99, of: ids[1])
        pass(3_000)
        #expect(ranking.loudest.first == ids[0])
        #expect(ranking.latest.first == ids[0])
        ranking.note(110, of: ids[1])
        pass(3_000)
        #expect(ranking.loudest.first == ids[1])
        #expect(ranking.latest.first == ids[1])
    }

    @Test mutating func `a speaker stays in front during pauses between words`() {
        ranking.note(loud, of: ids[0])
        pass(1_000)
        ranking.note(loud, of: ids[1])
        for _ in 0..<10 {
            ranking.note(0, of: ids[0])
            pass(300)
            ranking.note(loud, of: ids[0])
            pass(500)
            #expect(ranking.loudest.first == ids[0])
        }
    }

    @Test mutating func `a second speaker ranks behind one who goes on speaking`() {
        ranking.note(loud, of: ids[0])
        pass(2_500)
        ranking.note(loud, of: ids[11])
        pass(1_000)
        #expect(ranking.latest.prefix(2) == [ids[0], ids[11]])
    }

    @Test mutating func `a ranking forgets a participant who leaves`() {
        ranking.note(loud, of: ids[3])
        ranking.remove(ids[3])
        ranking.note(loud, of: ids[3])
        pass(1_000)
        #expect(!ranking.latest.contains(ids[3]) && !ranking.loudest.contains(ids[3]))
        #expect(ranking.latest.count == 11)
    }

    @Test mutating func `the ranking is right after a long time without being read`() {
        ranking.note(loud, of: ids[3])
        now = now + .seconds(86_400)
        ranking.advance(to: now)
        #expect(ranking.loudest.first == ids[3])
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    mutating func `the ranking changes seldom and never loses anybody`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var fronts = 0
        for _ in 0..<600 {
            for id in ids where Int.random(in: 0..<4, using: &random) == 0 {
                ranking.note(.random(in: 0...127, using: &random), of: id)
            }
            let (front, before) = (ranking.latest.first, ranking.latest)
            pass(100)
            if ranking.latest.first != front { fronts += 1 }
            // One moves at a time, and only forward.
            let moved = ranking.latest.first { id in
                ranking.latest.firstIndex(of: id) != before.firstIndex(of: id)
            }
            if let moved { #expect(ranking.latest.filter { $0 != moved } == before.filter { $0 != moved }) }
            #expect(Set(ranking.latest) == Set(ids) && ranking.latest.count == ids.count)
            #expect(Set(ranking.loudest) == Set(ids) && ranking.loudest.count == ids.count)
        }
        // In a minute in which everybody shouts.
        #expect(fronts <= 60)
    }
}
