import Base
import Interaction
import Stage
import TestSupport
import Testing

@testable import Node

@Suite struct `What a stage hears of sessions` {
    private let rig: HostRig
    private let id: SessionID
    private let bob = HostRig.bob

    init() async throws {
        var random = SeededGenerator(seed: 1)
        id = SessionID(using: &random)
        rig = try HostRig()
        try await rig.create()
    }

    /// The admission of somebody may still be waiting when others decide that they go.
    @Test func `is in the order in which it was decided, whoever waits for it first`() async throws {
        rig.host.put(.connect(bob, id), answering: nil)
        rig.host.put(.disconnect(id), answering: nil)
        await rig.host.takeNotices()
        #expect(await rig.host.connections.isEmpty)
        await rig.host.takeNotices()
        #expect(await rig.host.connections.isEmpty)
        rig.host.put(.disconnect(id), answering: nil)
        rig.host.put(.connect(bob, id), answering: nil)
        await rig.host.takeNotices()
        #expect(await rig.host.connections[.session(id)] == .some(bob))
        let source = Stage.Source(owner: HostRig.ann.id, name: nil, hasAudio: true, hasVideo: true)
        rig.host.put(.setSource(nil), answering: nil)
        rig.host.put(.setSource(source), answering: nil)
        await rig.host.takeNotices()
        #expect(await rig.host.stage?.source == source)
    }

    @Test func `comes before what is done with the session, or without it`() async throws {
        rig.host.put(.connect(nil, id), answering: nil)
        await rig.host.adopt(.session(id), as: bob)
        #expect(await rig.host.connections[.session(id)] == .some(bob))
        _ = try await rig.host.perform(.end, from: HostRig.ann)
        rig.host.put(.disconnect(id), answering: nil)
        var random = SeededGenerator(seed: 2)
        rig.host.put(.connect(nil, SessionID(using: &random)), answering: nil)
        #expect(await rig.host.closeIfIdle() == nil, "somebody has come")
    }

    @Test func `is answered to the session's client`() async throws {
        let told = Watched<[String]>([])
        let client = ControlEnd { text in
            told.change { $0.append(text) }
            return true
        }
        rig.host.put(.submit(.goLive, bob, id), answering: client)
        rig.host.put(.submit(.raiseHand, bob, id), answering: client)
        await rig.host.takeNotices()
        #expect(told.value.count == 1, "only refusals are answered")
        #expect(told.value.first?.contains(Rejection.notHost.name) == true)
        rig.host.put(.interact(.react(["heart": 1]), bob, id), answering: client)
        await rig.host.takeNotices()
        let answers = told.value.count
        #expect(answers == 2, "backstage there is no audience, which is said")
    }

    @Test func `comes to it whether its client can be reached or not`() async throws {
        rig.host.put(.submit(.raiseHand, bob, id), answering: nil)
        rig.host.put(.follow(bob, id), answering: nil)
        rig.host.put(.interact(.comment(key: "k", text: "hello"), bob, id), answering: nil)
        await rig.host.takeNotices()
        try await rig.host.settled()
        #expect(await rig.host.committed?.hands[bob.id] != nil)
        #expect(await rig.host.listeners.isEmpty)
        #expect(await rig.host.interaction.committed.comments.isEmpty)
    }
}
