import Base
import Testing

@testable import Node

@Suite struct `Answers to clients without an allocation` {
    private var limit = StrangerLimit(ofEach: 10, ofAll: 100)
    private let begin = MonotonicTime(nanoseconds: 3_000_000_000)

    /// How many of a hundred requests are answered.
    private mutating func answers(to text: String, after time: Duration = .zero) throws -> Int {
        let client = try #require(IPAddress(text))
        return (0..<100).count { _ in limit.take(client, at: begin + time) }
    }

    @Test mutating func `are left for others, however many one asks for`() throws {
        let found = [
            try answers(to: "203.0.113.7"), try answers(to: "203.0.113.8"),
            try answers(to: "2001:db8:1:2::7"), try answers(to: "2001:db8:1:2::8"),
        ]
        #expect(found == [10, 10, 10, 0])
    }

    @Test mutating func `are never all given to one site`() throws {
        var count = 0
        for network in 0..<64 { count += try answers(to: "2001:db8:1:\(network)::7") }
        // Of one /56, then of all of the /48.
        #expect(count == 40)
        for network in 1..<64 { count += try answers(to: "2001:db8:1:\(network)00::7") }
        #expect(count == 50)
        let others = try answers(to: "203.0.113.7")
        #expect(others == 10)
    }

    @Test mutating func `are limited in all, and again the next second`() throws {
        var count = 0
        for last in 1...30 { count += try answers(to: "203.0.113.\(last)") }
        #expect(count == 100)
        let same = try answers(to: "203.0.113.99", after: .milliseconds(999))
        let next = try answers(to: "203.0.113.1", after: .seconds(1))
        #expect(same == 0 && next == 10)
    }

    /// Each of 200 viewers sends two requests, and tries again after 250 ms, 500 ms, 1 s and so on (RFC 8489 §6.2.1).
    @Test mutating func `reach all in an office who join at once within seconds`() throws {
        limit = StrangerLimit(ofEach: TURNDatagrams.answersToNetwork, ofAll: TURNDatagrams.answersToStrangers)
        let office = try #require(IPAddress("203.0.113.7"))
        var missing = Array(repeating: 2, count: 200)
        for wait in [0, 250, 750, 1_750] {
            let now = begin + .milliseconds(wait)
            for viewer in missing.indices {
                while missing[viewer] > 0, limit.take(office, at: now) { missing[viewer] -= 1 }
            }
        }
        let left = missing.reduce(0, +)
        #expect(left == 0)
    }

    @Test mutating func `on this machine are limited in all only`() throws {
        let found = try answers(to: "127.0.0.1")
        #expect(found == 100)
    }
}
