import Base
import Foundation
import Stage
import Store
import Testing

@testable import Node

@Suite struct `The webhooks of a stream` {
    private struct Told: Decodable {
        struct Content: Decodable {
            struct Participant: Decodable {
                let id: String
                let name: String?
                let role: String
            }
            struct Stream: Decodable {
                let state: String
                let host: String
                let endReason: String?
            }

            let participant: Participant?
            let stream: Stream
            let banned: Bool?
        }

        let id: String
        let type: String
        let time: String
        let stream: String
        let data: Content

        var text: String {
            let participant = data.participant.map { "\($0.id) \($0.name ?? "?") \($0.role)" }
            let state = data.participant == nil ? "\(data.stream.state) \(data.stream.host)" : nil
            let ban = data.banned.map { $0 ? "banned" : "not banned" }
            return ([type] + [participant, state, ban].compactMap { $0 }).joined(separator: " ")
        }
    }

    /// Takes everything out of the outbox, in order.
    private func drain(_ outbox: any Outbox) async throws -> [Told] {
        var told: [Told] = []
        while let next = try await outbox.due(for: "r", at: .max, limit: 1).first {
            told.append(try JSONDecoder().decode(Told.self, from: Data(next.event.body)))
            #expect(told.last?.id == next.event.id)
            #expect(told.last?.type == next.event.type)
            try await outbox.settle([.delivered(next.number)])
        }
        return told
    }

    @Test func `tell in order what became of it and its participants`() async throws {
        let rig = try HostRig()
        let store = MemoryStore()
        try await store.outbox.setReceivers(["r"])
        let clock = rig.clock
        let host = StreamHost(
            rig.host.id,
            StreamHost.Environment(
                store: store, log: .silent, directory: StreamDirectory(), now: { clock.value },
                runsTimer: false, report: StageReport.event(_:of:at:), perform: { _, _ in }))
        let (ann, bob, eve) = (HostRig.ann, HostRig.bob, HostRig.sender("eve", .viewer))
        _ = try await host.create(host: ann.id, name: "Ann", edit: StageEdit())
        _ = try await host.perform(.join, from: ann)
        _ = try await host.perform(.join, from: bob)
        _ = try await host.perform(.join, from: eve)
        _ = try await host.perform(.invite(bob.id), from: ann)
        _ = try await host.perform(.accept, from: bob)
        _ = try await host.perform(.goLive, from: ann)
        _ = try await host.perform(.moveToViewers(bob.id), from: ann)
        _ = try await host.perform(.leave, from: bob)
        _ = try await host.perform(.ban(eve.id), from: ann)
        _ = try await host.perform(.end, from: ann)

        let told = try await drain(store.outbox)
        #expect(
            told.map(\.text) == [
                "stream.created backstage ann", "participant.joined ann Ann host",
                "participant.joined bob Bob viewer", "participant.joined eve Eve viewer",
                "participant.promoted bob Bob speaker", "stream.live live ann",
                "participant.demoted bob ? viewer", "participant.left bob ? viewer",
                "participant.removed eve ? viewer banned", "stream.ended ended ann",
            ])
        #expect(told.last?.data.stream.endReason == "ended")
        #expect(Set(told.map(\.id)).count == told.count)
        #expect(told.allSatisfy { $0.stream == "show" && $0.time == "2027-01-15T08:00:00.000Z" })
    }
}
