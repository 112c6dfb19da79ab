import Base
import TestSupport
import Testing
import Wire

@testable import ClientPeer

private typealias Agent = ICEControllingAgent
private typealias Rig = ICEClientRig

@Suite struct ICEClientNomination {
    @Test func `a pair is nominated at once if no better one is left`() throws {
        let rig = try Rig.connected()
        #expect(rig.agent.selected == Rig.path(0))
        #expect(rig.agent.lastConsent == Rig.time(0))
    }

    @Test func `waits a moment for a better pair`() throws {
        var rig = Rig(sockets: 2)
        _ = rig.advance(to: 0)
        let worse = try #require(try rig.requests(rig.advance(to: 50)).first)
        #expect(try rig.receive(rig.answer(worse.message), on: worse.path, at: 60) == [])
        #expect(rig.agent.deadline == Rig.time(160))
        #expect(try rig.answerAll(rig.advance(to: 160), at: 161) == [.select(Rig.path(1))])
    }

    @Test func `moves on to a better pair that answers late`() throws {
        var rig = Rig(sockets: 2)
        let better = try #require(try rig.requests(rig.advance(to: 0)).first)
        #expect(try rig.answerAll(rig.advance(to: 50), at: 60) == [])
        #expect(try rig.answerAll(rig.advance(to: 160), at: 160) == [.select(Rig.path(1))])
        let effects = try rig.receive(rig.answer(better.message), on: better.path, at: 300)
        #expect(try rig.answerAll(effects, at: 310) == [.select(Rig.path(0))])
    }

    @Test func `nomination as by Firefox does not go back to a worse pair`() throws {
        var rig = Rig(sockets: 2) { $0.nomination = .aggressive }
        let better = try #require(try rig.requests(rig.advance(to: 0)).first)
        let worse = try #require(try rig.requests(rig.advance(to: 50)).first)
        #expect(
            try rig.receive(rig.answer(better.message), on: better.path, at: 60) == [.select(Rig.path(0))])
        #expect(try rig.receive(rig.answer(worse.message), on: worse.path, at: 70) == [])
    }

    @Test func `follows a command, and then stays`() throws {
        var rig = try Rig.connected(sockets: 2)
        #expect(try rig.answerAll(rig.advance(to: 50), at: 50) == [])
        let effects = try #require(
            rig.agent.nominate(
                Rig.path(1), at: Rig.time(60), authenticator: rig.authenticator, using: &rig.random))
        #expect(try rig.answerAll(effects, at: 70) == [.select(Rig.path(1))])
        #expect(try rig.answerAll(rig.advance(to: 4_000), at: 4_000) == [])
        #expect(rig.agent.selected == Rig.path(1))
    }

    @Test func `nominating a path that is not valid is refused`() throws {
        var rig = try Rig.connected(sockets: 2)
        let effects = rig.agent.nominate(
            Rig.path(1), at: Rig.time(1), authenticator: rig.authenticator, using: &rig.random)
        #expect(effects == nil)
    }

    @Test(arguments: Agent.Nomination.allCases)
    func `falls back when a socket is gone`(nomination: ICEControllingAgent.Nomination) throws {
        var rig = try Rig.connected(sockets: 2, nomination)
        #expect(try rig.answerAll(rig.advance(to: 50), at: 50) == [])
        rig.agent.removeLocal(Rig.locals[0])
        #expect(rig.agent.selected == nil)
        #expect(try rig.answerAll(rig.advance(to: 100), at: 110) == [.select(Rig.path(1))])
    }

    @Test func `nomination finds a socket that replaced another`() throws {
        var rig = try Rig.connected()
        rig.agent.removeLocal(Rig.locals[0])
        rig.agent.addLocal(.init(host: Rig.locals[1], index: 1))
        #expect(try rig.answerAll(rig.advance(to: 100), at: 110) == [.select(Rig.path(1))])
    }

    @Test func `nomination after a restart uses the new credentials`() throws {
        var rig = try Rig.connected()
        rig.agent.restart(
            local: Rig.restarted, remote: Rig.restarted, remoteCandidates: [.init(host: Rig.remote)],
            at: Rig.time(100))
        #expect(rig.agent.selected == Rig.path(0))
        let (path, request) = try #require(try rig.requests(rig.advance(to: 100)).first)
        #expect(request.username == "next:next")
        #expect(request.isAuthentic(key: Rig.restarted.key))
        let effects = try rig.receive(rig.answer(request, key: Rig.restarted.key), on: path, at: 110)
        let nomination = try #require(try rig.requests(effects).first)
        #expect(nomination.message.message.useCandidate)
    }
}

@Suite struct ICEClientConsent {
    /// When consent checks are sent to a server that answers them.
    private func checkTimes(_ rig: inout Rig, until end: Int64) throws -> [Int64] {
        var times: [Int64] = []
        for time in stride(from: Int64(1), to: end, by: 1) {
            let effects = rig.advance(to: time)
            guard !effects.isEmpty else { continue }
            times.append(time)
            #expect(try rig.answerAll(effects, at: time) == [])
        }
        return times
    }

    @Test func `is asked for every 2.5 s, give or take a fifth`() throws {
        var rig = try Rig.connected()
        let times = try checkTimes(&rig, until: 60_000)
        let gaps = zip([0] + times, times).map { $1 - $0 }
        #expect(gaps.allSatisfy { (2_000...3_001).contains($0) })
        #expect(Set(gaps).count > 10)
    }

    @Test(arguments: Agent.Nomination.allCases)
    func `nominates again only where Chrome does`(nomination: ICEControllingAgent.Nomination) throws {
        var rig = try Rig.connected(nomination)
        let requests = try rig.requests(rig.advance(to: 3_000))
        #expect(requests.map(\.message.message.useCandidate) == [nomination == .regular])
    }

    @Test func `checks are sent once`() throws {
        var rig = try Rig.connected()
        var identifiers: [STUNTransactionID] = []
        for time in stride(from: Int64(100), to: 20_000, by: 100) {
            identifiers += try rig.requests(rig.advance(to: time)).map(\.message.message.transactionID)
        }
        #expect(identifiers.count > 5)
        #expect(Set(identifiers).count == identifiers.count)
    }

    @Test func `is lost after 30 s without an answer`() throws {
        var rig = try Rig.connected()
        for time in stride(from: Int64(100), to: 30_000, by: 100) {
            #expect(try rig.requests(rig.advance(to: time)).count <= 1)
        }
        #expect(rig.advance(to: 30_000) == [.consentLost])
        #expect(rig.advance(to: 30_100) == [])
        #expect(rig.agent.deadline == nil)
    }
}
