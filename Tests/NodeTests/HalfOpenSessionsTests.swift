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
        for _ in 1..<HalfOpenSessions.unchecked.ofSubscriber { #expect(try add(text).crowded == nil) }
        #expect(try add("203.0.113.8").crowded == nil)
        #expect(try add(text).crowded == first.id)
        #expect(sessions.count == HalfOpenSessions.unchecked.ofSubscriber + 1)
    }

    /// When a stream begins, all who wait for it behind one address request it within the time of one check.
    @Test mutating func `have room for a hundred of one office at a time, and the handshakes of two hundred`()
        throws
    {
        for _ in 0..<2 {
            var ids: [SessionID] = []
            for _ in 0..<100 {
                let added = try add("203.0.113.7")
                #expect(added.crowded == nil)
                ids.append(added.id)
            }
            for id in ids {
                let crowded = sessions.noteCheck(of: id)
                #expect(crowded == nil)
            }
        }
        #expect(sessions.count == 200)
    }

    @Test func `leave most places to others, however many networks a site has`() {
        for limits in [HalfOpenSessions.unchecked, HalfOpenSessions.checked] {
            #expect(limits.ofSubscriber * 20 <= limits.ofAll && limits.ofSite * 4 <= limits.ofAll)
        }
    }

    @Test mutating func `are counted for each network of a site, whichever addresses it takes`() throws {
        let first = try add("2001:db8:1:1::1")
        for number in 1..<HalfOpenSessions.unchecked.ofSite {
            #expect(try add("2001:db8:1:\(number / 10 + 1)00::\(number)").crowded == nil)
        }
        #expect(try add("2001:db8:2:1::1").crowded == nil)
        #expect(try add("2001:db8:1:ffff::1").crowded == first.id)
    }

    @Test mutating func `are counted for each IPv6 network of 56 bits`() throws {
        let first = try add("2001:db8:1:1::1")
        for number in 1..<4 * HalfOpenSessions.unchecked.ofSubscriber {
            #expect(try add("2001:db8:1:\(number / 10 + 1)::\(number)").crowded == nil)
        }
        #expect(try add("2001:db8:1:100::1").crowded == nil)
        #expect(try add("2001:db8:1:ff::1").crowded == first.id)
    }

    @Test(arguments: [nil, "127.0.0.1", "::1"])
    mutating func `are counted in all where nobody knows whose they are`(
        text: String?
    ) throws {
        let first = try add(text)
        for _ in 1..<HalfOpenSessions.unchecked.ofAll { #expect(try add(text).crowded == nil) }
        #expect(try add("203.0.113.7").crowded == first.id)
        #expect(sessions.count == HalfOpenSessions.unchecked.ofAll)
    }

    @Test mutating func `the first check moves a session from the unchecked to the checked count`() throws {
        var ids: [SessionID] = []
        for _ in 0..<HalfOpenSessions.unchecked.ofSubscriber { ids.append(try add("203.0.113.7").id) }
        let crowded = sessions.noteCheck(of: ids[3])
        #expect(crowded == nil)
        #expect(try add("203.0.113.7").crowded == nil)
        #expect(try add("203.0.113.7").crowded == ids[0])
        for _ in 1..<HalfOpenSessions.checked.ofSubscriber { #expect(try check("203.0.113.7") == nil) }
        #expect(try check("203.0.113.7") == ids[3])
        #expect(try check("203.0.113.8") == nil)
        // A session that is connected or gone is no longer counted.
        let connected = sessions.noteCheck(of: ids[5])
        #expect(connected != nil)
        sessions.remove(ids[5])
        #expect(try check("203.0.113.7") == nil)
    }

    /// Further checks of a session are not counted again.
    @Test mutating func `checks of a known session count once, those of a removed one never`() throws {
        let id = try add("203.0.113.7").id
        for _ in 0..<3 { _ = sessions.noteCheck(of: id) }
        #expect(sessions.count == 1)
        sessions.remove(id)
        _ = sessions.noteCheck(of: id)
        #expect(sessions.count == 0)
    }

    @Test mutating func `are counted for each site after their check, too`() throws {
        let first = try add("2001:db8:1:1::1").id
        _ = sessions.noteCheck(of: first)
        for number in 1..<HalfOpenSessions.checked.ofSite {
            #expect(try check("2001:db8:1:\(number / 10 + 1)::\(number)") == nil)
        }
        #expect(try check("2001:db8:1:ffff::1") == first)
        #expect(try check("2001:db8:2:1::1") == nil)
    }

    /// Adds a session that has its first check at once.
    private mutating func check(_ text: String) throws -> SessionID? {
        let (id, _) = try add(text)
        return sessions.noteCheck(of: id)
    }
}

@Suite struct `Sessions without a token` {
    @Test func `are so many for an address, and four times as many for a site`() throws {
        var sessions = StrangersSessions(limit: 10)
        func taken(_ address: (Int) -> String) throws -> Int {
            try (0..<100).count { number in
                let client = try #require(IPAddress(address(number)))
                guard sessions.hasRoom(for: client) else { return false }
                sessions.add(client)
                return true
            }
        }
        #expect(try taken { _ in "203.0.113.7" } == 10)
        #expect(try taken { _ in "203.0.113.8" } == 10)
        #expect(try taken { "2001:db8:1:1::\($0)" } == 10)
        #expect(try taken { "2001:db8:1:\($0 + 2)::1" } == 30)
        #expect(try taken { _ in "127.0.0.1" } == 100)
        sessions.remove(IPAddress("203.0.113.7"))
        #expect(try taken { _ in "203.0.113.7" } == 1)
    }
}
