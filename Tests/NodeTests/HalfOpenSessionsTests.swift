import Base
import TestSupport
import Testing

@testable import Node

@Suite struct `Sessions without a check` {
    private var sessions = HalfOpenSessions()
    private var random = SeededGenerator(seed: 1)

    private mutating func add(_ text: String?) throws -> (id: SessionID, crowded: SessionID?) {
        let id = SessionID(using: &random)
        let address = try text.map { try #require(IPAddress($0)) }
        return (id, sessions.add(id, of: address))
    }

    @Test(arguments: ["203.0.113.7", "2001:db8:1:2::7"]) mutating func `are counted for each address`(
        text: String
    ) throws {
        let first = try add(text)
        for _ in 1..<HalfOpenSessions.limitForEach { #expect(try add(text).crowded == nil) }
        #expect(try add("203.0.113.8").crowded == nil)
        #expect(try add(text).crowded == first.id)
        #expect(sessions.count == HalfOpenSessions.limitForEach + 1)
    }

    @Test mutating func `are counted for each network of a site, whichever addresses it takes`() throws {
        let first = try add("2001:db8:1:1::1")
        for number in 1..<HalfOpenSessions.limitForSite {
            #expect(try add("2001:db8:1:\(number / 10 + 1)::\(number)").crowded == nil)
        }
        #expect(try add("2001:db8:2:1::1").crowded == nil)
        #expect(try add("2001:db8:1:ffff::1").crowded == first.id)
    }

    @Test(arguments: [nil, "127.0.0.1", "::1"])
    mutating func `are counted in all where nobody knows whose they are`(
        text: String?
    ) throws {
        let first = try add(text)
        for _ in 1..<HalfOpenSessions.limit { #expect(try add(text).crowded == nil) }
        #expect(try add("203.0.113.7").crowded == first.id)
        #expect(sessions.count == HalfOpenSessions.limit)
    }

    @Test mutating func `leave the count with their first check`() throws {
        var ids: [SessionID] = []
        for _ in 0..<HalfOpenSessions.limitForEach { ids.append(try add("203.0.113.7").id) }
        sessions.remove(ids[3])
        #expect(try add("203.0.113.7").crowded == nil)
        #expect(try add("203.0.113.7").crowded == ids[0])
    }
}
