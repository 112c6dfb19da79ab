import Base
import TestSupport
import Testing
import Wire

@testable import ClientPeer

private typealias Agent = ICEControllingAgent
private typealias Rig = ICEClientRig

@Suite struct ICEClientChecks {
    @Test(arguments: Agent.Nomination.allCases)
    func `say who asks, in which role and how important it is`(nomination: ICEControllingAgent.Nomination)
        throws
    {
        var rig = Rig { $0.nomination = nomination }
        let requests = try rig.requests(rig.advance(to: 0))
        let (path, request) = try #require(requests.first)
        #expect(requests.count == 1)
        #expect(path == Rig.path(0))
        #expect(request.message.kind == .bindingRequest)
        #expect(request.username == "serv:clnt")
        #expect(request.isAuthentic(key: Rig.server.key))
        #expect(request.fingerprint == .right)
        #expect(request.message.priority == 0x6EFF_FFFF)
        #expect(request.message.iceControlling != nil)
        #expect(request.message.iceControlled == nil)
        #expect(request.message.useCandidate == (nomination == .aggressive))
    }

    @Test func `begin with the best pair, one every 50 ms`() throws {
        var rig = Rig(sockets: 2, remotes: 2)
        var paths: [Agent.Path] = []
        for time in stride(from: Int64(0), to: 250, by: 10) {
            paths += try rig.requests(rig.advance(to: time)).map(\.path)
            #expect(paths.count == min(4, Int(time / 50) + 1))
        }
        #expect(paths == [Rig.path(0, 0), Rig.path(0, 1), Rig.path(1, 0), Rig.path(1, 1)])
    }

    @Test func `pair addresses of one IP version only`() {
        var rig = Rig()
        rig.agent.addRemote(.init(host: TransportAddress(ip: IPAddress(high: 1, low: 2), port: 1)))
        #expect(rig.agent.pairs.count == 1)
    }

    @Test func `are a hundred pairs at most`() {
        var rig = Rig(remotes: 150)
        #expect(rig.agent.pairs.count == 100)
        rig.agent.addRemote(.init(host: Rig.remote))
        #expect(rig.agent.pairs.count == 100)
    }

    @Test func `are sent seven times, ever more seldom, and then fail`() throws {
        var rig = Rig()
        var times: [Int64] = []
        var failure: Int64?
        for time in stride(from: Int64(0), to: 60_000, by: 100) {
            let effects = rig.advance(to: time)
            if try !rig.requests(effects).isEmpty { times.append(time) }
            if effects.contains(.failed) { failure = time }
        }
        #expect(times == [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500])
        #expect(failure == 39_500)
        #expect(rig.agent.deadline == nil)
    }

    @Test func `are sent again unchanged`() throws {
        var rig = Rig()
        #expect(rig.advance(to: 0) == rig.advance(to: 500))
    }

    @Test func `say when they want to go on`() throws {
        var rig = Rig(sockets: 2)
        #expect(rig.agent.deadline == .zero)
        _ = rig.advance(to: 0)
        #expect(rig.agent.deadline == Rig.time(50))
        _ = rig.advance(to: 50)
        #expect(rig.agent.deadline == Rig.time(500))
    }
}

@Suite struct ICEClientAnswers {
    @Test func `that succeed select the path and tell our address`() throws {
        var rig = Rig { $0.nomination = .aggressive }
        let (path, request) = try #require(try rig.requests(rig.advance(to: 0)).first)
        let mapped = TransportAddress(ip: IPAddress(ipv4: 9), port: 9)
        let effects = try rig.receive(rig.answer(request, mapped: mapped), on: path, at: 30)
        #expect(effects == [.select(path)])
        #expect(rig.agent.mappedAddress == mapped)
        #expect(rig.agent.roundTripTime == .milliseconds(30))
    }

    @Test func `are refused if they cannot be read`() {
        var rig = Rig()
        #expect(throws: Agent.Refusal.malformed) { try rig.receive([1, 1, 0, 0], on: Rig.path(0), at: 0) }
    }

    @Test func `are refused if they are questions`() throws {
        var rig = Rig()
        let (path, request) = try #require(try rig.requests(rig.advance(to: 0)).first)
        #expect(throws: Agent.Refusal.notAnAnswer) { try rig.receive(request.bytes, on: path, at: 1) }
    }

    @Test func `are refused if nobody asked`() throws {
        var rig = Rig()
        let (path, request) = try #require(try rig.requests(rig.advance(to: 0)).first)
        _ = try rig.receive(rig.answer(request), on: path, at: 1)
        #expect(throws: Agent.Refusal.unknownTransaction) {
            try rig.receive(rig.answer(request), on: path, at: 2)
        }
    }

    @Test(arguments: [nil, Rig.client.key]) func `are refused without the server's password`(key: [UInt8]?)
        throws
    {
        var rig = Rig()
        let (path, request) = try #require(try rig.requests(rig.advance(to: 0)).first)
        #expect(throws: Agent.Refusal.unauthenticated) {
            try rig.receive(rig.answer(request, key: key), on: path, at: 1)
        }
        #expect(throws: Agent.Refusal.unauthenticated) {
            let conflict = rig.answer(request, kind: .bindingError, key: key) {
                $0.appendErrorCode(.roleConflict)
            }
            return try rig.receive(conflict, on: path, at: 1)
        }
        #expect(throws: Never.self) { try rig.receive(rig.answer(request), on: path, at: 1) }
    }

    @Test func `from elsewhere fail the pair`() throws {
        var rig = Rig()
        let (path, request) = try #require(try rig.requests(rig.advance(to: 0)).first)
        let elsewhere = Agent.Path(local: path.local, remote: TransportAddress(ip: .loopback, port: 1))
        #expect(try rig.receive(rig.answer(request), on: elsewhere, at: 1) == [.failed])
    }

    @Test(arguments: [STUNErrorCode.badRequest, .unauthenticated])
    func `400 and 401 fail the pair, even without a password`(code: STUNErrorCode) throws {
        var rig = Rig()
        let (path, request) = try #require(try rig.requests(rig.advance(to: 0)).first)
        let answer = rig.answer(request, kind: .bindingError, key: nil) { $0.appendErrorCode(code) }
        #expect(try rig.receive(answer, on: path, at: 1) == [.failed])
    }

    @Test func `487 change the role, once, and the check is repeated`() throws {
        var rig = Rig(sockets: 2, isControlling: false)
        let requests = try rig.requests(rig.advance(to: 0) + rig.advance(to: 50))
        #expect(requests.allSatisfy { $0.message.message.iceControlled != nil })
        var repeated: [(path: Agent.Path, message: ReceivedSTUN)] = []
        for (path, request) in requests {
            let conflict = rig.answer(request, kind: .bindingError) { $0.appendErrorCode(.roleConflict) }
            repeated += try rig.requests(rig.receive(conflict, on: path, at: 60))
            #expect(rig.agent.isControlling)
        }
        #expect(Set(repeated.map(\.path)) == [Rig.path(0), Rig.path(1)])
        #expect(repeated.allSatisfy { $0.message.message.iceControlling != nil })
    }
}
