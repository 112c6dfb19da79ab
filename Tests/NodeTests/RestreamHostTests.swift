import Base
import Foundation
import Restream
import Stage
import Store
import Synchronization
import Testing

@testable import Node

@Suite struct `The targets of a stream` {
    private let rig: HostRig
    private let address: RestreamAddress

    init() async throws {
        rig = try HostRig()
        address = try RestreamAddress("rtmps://live.example.org/app")
        try await rig.create()
    }

    private func reopened() async throws -> StreamHost {
        let stored = try #require(try await rig.store.load(.one(rig.host.id)).first)
        return try StreamHost(
            stored,
            HostRig.environment(rig.store, StreamDirectory(), clock: rig.clock, effects: rig.effects))
    }

    @Test func `are as they were after a restart, with their keys and numbers`() async throws {
        let first = try await rig.host.addRestream(to: address, key: Secret("one"))
        _ = try await rig.host.addRestream(to: address, key: Secret("two"))
        try await rig.host.removeRestream(first.number)
        let host = try await reopened()
        #expect(host.durableState.restreams == rig.host.durableState.restreams)
        #expect(host.durableState.restreams.targets.map(\.key.exposed) == ["two"])
        #expect(try await host.addRestream(to: address, key: Secret("one")).number == 3)
    }

    @Test func `are forgotten with the end of the stream`() async throws {
        _ = try await rig.host.addRestream(to: address, key: Secret("one"))
        _ = try await rig.host.perform(.end, from: HostRig.ann)
        #expect(rig.host.durableState.restreams.targets.isEmpty)
        #expect(try await reopened().durableState.restreams.targets.isEmpty)
        await #expect(throws: RestreamRefusal.stage(.rejected(.ended))) {
            try await rig.host.addRestream(to: address, key: Secret("two"))
        }
    }

    @Test func `are what is durable, whatever was wanted`() async throws {
        _ = try await rig.host.addRestream(to: address, key: Secret("one"))
        rig.store.fail(with: .unavailable("full"))
        await #expect(throws: RestreamRefusal.self) {
            try await rig.host.addRestream(to: address, key: Secret("two"))
        }
        await #expect(throws: RestreamRefusal.self) { try await rig.host.removeRestream(1) }
        rig.store.fail(with: nil)
        #expect(rig.host.durableState.restreams.targets.map(\.number) == [1])
        #expect(try await rig.host.addRestream(to: address, key: Secret("two")).number == 2)
    }

    @Test func `are told to the host alone, without a key`() async throws {
        let (ann, bob) = (TestFollower(), TestFollower())
        _ = try await rig.host.follow(as: HostRig.ann, since: nil, ann)
        _ = try await rig.host.follow(as: HostRig.bob, since: nil, bob)
        let target = try await rig.host.addRestream(to: address, key: Secret("a-key"))
        let status = RestreamStatus(
            number: target.number, address: target.address,
            state: .failed(.refused("No."), nextTry: WallTime(milliseconds: 0)),
            since: WallTime(milliseconds: 0))
        await rig.host.tellRestream(status.json)
        #expect(ann.types.contains("restream") && !bob.types.contains("restream"))
        let heard = ann.state.withLock { $0.messages.map { JSON.object($0).text } }.joined()
        #expect(heard.contains("\"refused\"") && !heard.contains("a-key"))
    }

    @Test func `are told to webhooks`() async throws {
        let (store, clock) = (MemoryStore(), rig.clock)
        try await store.outbox.setReceivers(["r"])
        let host = StreamHost(
            rig.host.id,
            StreamHost.Environment(
                store: store, log: .silent, directory: StreamDirectory(), now: { clock.value },
                runsTimer: false, report: StageReport.event(_:of:at:), perform: { _, _ in }))
        _ = try await host.create(host: HostRig.ann.id, name: "Ann", edit: StageEdit())
        let status = RestreamStatus(
            number: 1, address: address, state: .live, since: WallTime(milliseconds: 0))
        await host.report(restream: status.json, as: "restream.live")
        try await host.settled()
        let events = try await store.outbox.due(for: "r", at: .max, limit: 1)
        try await store.outbox.settle(events.map { .delivered($0.number) })
        let event = try #require(try await store.outbox.due(for: "r", at: .max, limit: 1).first?.event)
        #expect(event.type == "restream.live")
        let body = try JSONDecoder().decode(JSON.self, from: Data(event.body))
        #expect(body["data"]?["restream"]?["state"] == .string("live"))
    }
}
