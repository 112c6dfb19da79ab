import Base
import Forwarding
import Foundation
import Interaction
import Recordings
import Stage
import Store
import TestSupport
import Testing

@testable import Node

private let day = 86_400

/// A node that nobody drives but the test, on a clock that it moves by days.
private struct RetentionRig {
    let store = SlowStore()
    let clock = Shared(Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000)))
    let node: Node

    init(_ change: (inout RetentionSettings) -> Void) throws {
        var configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
        change(&configuration.retention)
        node = try Node(configuration: configuration, log: .silent, store: store) { [clock] in clock.value }
    }

    func pass(days: Int) {
        clock.change { moment in
            moment = Moment(
                elapsed: moment.elapsed + .seconds(days * day),
                wall: moment.wall.advanced(bySeconds: days * day))
        }
    }

    /// Until nothing is due any more, as the node does each second.
    func deleteExpired() async {
        var turns = 0
        repeat {
            clock.change { $0 = Moment(elapsed: $0.elapsed + .seconds(1), wall: $0.wall) }
            await node.deleteExpired()
            turns += 1
        } while await node.retention.due <= clock.value.elapsed + .seconds(1) && turns < 1_000
    }

    func host(_ name: String) async throws -> StreamHost {
        try await node.host(of: try #require(StreamID(name)))
    }

    /// A live stream with a comment.
    func goLive(_ name: String) async throws -> StreamHost {
        let host = try await host(name)
        _ = try await host.create(host: HostRig.ann.id, name: "Ann", edit: StageEdit())
        _ = try await host.perform(.goLive, from: HostRig.ann)
        try await comment("the first", in: host)
        return host
    }

    func comment(_ text: String, in host: StreamHost) async throws {
        _ = try await host.perform(
            .comment(key: text.replacing(" ", with: "-"), text: text), from: HostRig.bob)
    }

    func end(_ host: StreamHost) async throws { _ = try await host.perform(.end, from: HostRig.ann) }

    func comments(of name: String) async throws -> [String] {
        guard
            case .array(let comments) = try await host(name).comments(before: nil, after: nil, limit: 50)[
                "comments"]
        else { return [] }
        return comments.compactMap { if case .string(let text) = $0["text"] { text } else { nil } }
    }

    var names: [String] {
        get async throws { try await store.load(.all).map(\.listing.stream.description) }
    }
}

@Suite(.timeLimit(.minutes(10))) struct Retention {
    @Test func `deletes nothing unless somebody asks for it`() async throws {
        let rig = try RetentionRig { _ in }
        try await rig.end(try await rig.goLive("old"))
        rig.pass(days: 10_000)
        await rig.deleteExpired()
        #expect(try await rig.names == ["old"])
        #expect(try await rig.comments(of: "old") == ["the first"])
        #expect(await rig.node.retentionCounts == RetentionCounts())
        await rig.node.stop()
    }

    @Test func `deletes streams whole, so long after their end, and a name is free again`() async throws {
        let rig = try RetentionRig { $0.streams = 30 * day }
        try await rig.end(try await rig.goLive("old"))
        let live = try await rig.goLive("live")
        // A stream whose host is away for so many days ends once its time is looked at.
        await live.connect(HostRig.ann, by: .socket(1))
        rig.pass(days: 20)
        try await rig.end(try await rig.goLive("young"))
        rig.pass(days: 11)
        await rig.deleteExpired()
        #expect(try await rig.names == ["live", "young"])
        #expect(await rig.node.retentionCounts.streams == 1)
        // Nobody finds it any more, in lists or by its name.
        let old = try #require(StreamID("old"))
        #expect(rig.node.streamSnapshots.map(\.id.description).sorted() == ["live", "young"])
        #expect(await rig.node.streamSnapshot(old) == nil)
        _ = try await rig.goLive("old")
        #expect(try await rig.comments(of: "old") == ["the first"])
        try await rig.comment("goes on", in: live)
        await rig.node.stop()
    }

    /// Such a viewer was lost: the next host of the name did not know of them.
    @Test func `leaves viewers waiting for the next stream of the name`() async throws {
        let rig = try RetentionRig { $0.streams = 30 * day }
        let host = try await rig.host("old")
        _ = try await host.create(host: HostRig.ann.id, name: "Ann", edit: StageEdit(), origin: .published)
        _ = try await host.perform(.publish, from: HostRig.ann)
        try await rig.end(host)
        rig.pass(days: 31)
        let request = SessionRequest(
            purpose: .play, stream: host.id, sender: HostRig.bob,
            offer: try Fixtures.text("Offers/chrome-play.sdp"), patience: .seconds(60))
        let viewer = try await rig.node.createSession(request).id
        await rig.node.take(.connected(viewer, nil, nil))
        await host.takeNotices()
        #expect(await host.connections.count == 1)
        await rig.deleteExpired()
        #expect(try await rig.names.isEmpty)
        let next = try await rig.host("old")
        #expect(next !== host)
        #expect(await next.connections.count == 1)
        #expect(await rig.node.streamSnapshot(host.id)?.createdAt == nil)
        _ = try await next.beginPublishing(HostRig.ann, canCreate: true)
        let counts = try #require(await next.stage?.counts)
        #expect(counts.viewers + counts.waiting == 1)
        _ = await rig.node.endSession(viewer)
        #expect(await next.connections.isEmpty)
        await rig.node.stop()
    }

    @Test func `takes many streams a hundred at a time`() async throws {
        let rig = try RetentionRig { $0.streams = day }
        for number in 0..<250 {
            let id = try #require(StreamID("s\(number)"))
            var commit = StreamCommit(stream: id, basis: 0, records: [[1]])
            commit.listing = StreamListing(
                stream: id, state: "ended", host: "ann", createdAt: 1, endedAt: Int64(number))
            try await rig.store.commit(commit)
        }
        rig.clock.change { $0 = Moment(elapsed: $0.elapsed + .seconds(1), wall: $0.wall) }
        await rig.node.deleteExpired()
        #expect(try await rig.names.count == 150)
        // Not before a second has passed.
        await rig.node.deleteExpired()
        #expect(try await rig.names.count == 150)
        await rig.deleteExpired()
        #expect(try await rig.names.isEmpty)
        await rig.node.stop()
    }

    @Test func `deletes comments by their age, and with a stream that ended so long ago all of them`()
        async throws
    {
        let rig = try RetentionRig { $0.comments = 30 * day }
        let live = try await rig.goLive("live")
        // A stream whose host is away for so many days ends once its time is looked at.
        await live.connect(HostRig.ann, by: .socket(1))
        _ = try await live.perform(.pin(1), from: HostRig.ann)
        try await rig.end(try await rig.goLive("ended"))
        rig.pass(days: 20)
        try await rig.comment("the second", in: live)
        await rig.deleteExpired()
        #expect(try await rig.comments(of: "live") == ["the first", "the second"])
        rig.pass(days: 11)
        await rig.deleteExpired()
        #expect(try await rig.comments(of: "live") == ["the second"])
        #expect(try await rig.comments(of: "ended") == [])
        #expect(await rig.node.retentionCounts.comments == 2)
        // Neither the store nor its records know the words any more.
        for stored in try await rig.store.load(.all) {
            for bytes in stored.records + [stored.snapshot ?? []] {
                #expect(!String(decoding: bytes, as: UTF8.self).contains("the first"))
            }
        }
        // Numbers go on, and what is found by them.
        try await rig.comment("the third", in: live)
        _ = try await live.perform(.delete(2), from: HostRig.ann)
        #expect(try await rig.comments(of: "live") == ["the third"])
        await rig.node.stop()
    }

    @Test func `tries again what cannot be deleted now, and counts that`() async throws {
        let rig = try RetentionRig { settings in
            settings.streams = 30 * day
            settings.comments = 10 * day
        }
        try await rig.end(try await rig.goLive("old"))
        rig.pass(days: 15)
        rig.store.fail(with: .unavailable("the disk is full"))
        await rig.deleteExpired()
        #expect(await rig.node.retentionCounts.failures > 0)
        #expect(try await rig.comments(of: "old") == ["the first"])
        rig.store.fail(with: nil)
        rig.pass(days: 1)
        await rig.deleteExpired()
        #expect(try await rig.comments(of: "old") == [])
        rig.pass(days: 15)
        await rig.deleteExpired()
        #expect(try await rig.names.isEmpty)
        await rig.node.stop()
    }

    @Test func `looks once a minute at most where things are kept for long`() {
        var settings = RetentionSettings()
        settings.streams = 30 * day
        #expect(settings.interval == .seconds(60))
        settings.comments = 100
        #expect(settings.interval == .seconds(10))
        settings.recordings = 1
        #expect(settings.interval == .seconds(1))
    }
}
