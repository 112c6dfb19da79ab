import Base
import Foundation
import Testing

@testable import Stage

@Suite struct `The latest participants` {
    private func id(_ number: Int) -> ParticipantID { StageRig.id("p\(number)") }

    @Test func `the list is bounded: each further participant replaces the oldest one`() {
        var latest = LatestParticipants()
        for number in 0..<Stage.banLimit { latest.insert(id(number)) }
        #expect(latest.contains(id(0)) && latest.contains(id(Stage.banLimit - 1)))
        // Inserting somebody again takes no further place.
        latest.insert(id(5))
        #expect(latest.contains(id(0)))
        latest.insert(id(Stage.banLimit))
        #expect(!latest.contains(id(0)) && latest.contains(id(1)) && latest.contains(id(Stage.banLimit)))
        // Removing somebody frees a place.
        latest.remove(id(7))
        latest.insert(id(Stage.banLimit + 1))
        #expect(!latest.contains(id(7)) && latest.contains(id(1)))
        latest.insert(id(7))
        #expect(latest.contains(id(7)) && !latest.contains(id(1)))
    }

    @Test func `decoding keeps the order, drops duplicates and respects the limit`() throws {
        var latest = LatestParticipants()
        for number in [3, 1, 2] { latest.insert(id(number)) }
        latest.remove(id(9))
        let bytes = try JSONEncoder().encode(latest)
        #expect(String(bytes: bytes, encoding: .utf8) == #"["p3","p1","p2"]"#)
        let read = try JSONDecoder().decode(LatestParticipants.self, from: bytes)
        #expect(read == latest)
        let twice = Data(#"["p3","p1","p3","p2","p1"]"#.utf8)
        let cleaned = try JSONDecoder().decode(LatestParticipants.self, from: twice)
        #expect(cleaned == latest)
        let many = (0...Stage.banLimit).map(id)
        let data = try JSONEncoder().encode(many)
        let bounded = try JSONDecoder().decode(LatestParticipants.self, from: data)
        #expect(!bounded.contains(id(0)) && bounded.contains(id(1)))
        #expect(bounded.contains(id(Stage.banLimit)))
    }

    @Test func `two lists with different orders are not equal`() {
        var (one, other) = (LatestParticipants(), LatestParticipants())
        for number in [1, 2] { one.insert(id(number)) }
        for number in [2, 1] { other.insert(id(number)) }
        #expect(one != other, "they forget in another order")
        other.remove(id(2))
        other.insert(id(2))
        #expect(one == other)
    }
}
