import Base
import Stage
import Store
import TestSupport
import Testing

@testable import Node

/// Webhooks of files, which nothing reports twice.
@Suite(.timeLimit(.minutes(10))) struct `The webhook of a complete file` {
    private let rig: WatchedHostRig
    private let ann = HostRig.ann

    init() throws {
        rig = try WatchedHostRig(reportsEvents: true)
    }

    private func create() async throws {
        _ = try await rig.host.create(host: ann.id, name: "Ann", edit: StageEdit())
    }

    private func file(_ id: String) -> JSON { .object(["id": .string(id)]) }

    /// What the store has taken, in order.
    private var told: [String] {
        let types = rig.store.commits.flatMap(\.events).map(\.type)
        return types.filter { ["recording.ended", "clip.ready"].contains($0) }
    }

    @Test func `is stored once the disk works again, and once only`() async throws {
        try await create()
        // Its audience is told of before anything else.
        await rig.wait(.seconds(1))
        rig.store.fail(with: .unavailable("full"))
        await rig.host.report(recording: file("r"))
        await rig.host.report(clip: file("c"))
        #expect(await rig.host.deadline == rig.now.elapsed + FileReports.retryInterval)
        await rig.wait(.seconds(1))
        #expect(await rig.host.deadline == rig.now.elapsed + FileReports.retryInterval)
        rig.store.fail(with: nil)
        await rig.wait(.milliseconds(999))
        #expect(told == [])
        await rig.wait(.milliseconds(1))
        #expect(told == ["recording.ended", "clip.ready"])
        await rig.wait(.seconds(60))
        #expect(told.count == 2)
    }

    /// Each refusal is a line in the log, of each stream, for as long as the disk is full.
    @Test func `is tried less often the longer the disk fails, and soon once it works`() async throws {
        try await create()
        await rig.wait(.seconds(1))
        rig.store.fail(with: .unavailable("full"))
        await rig.host.report(recording: file("r"))
        var waits: [Duration] = []
        for _ in 0..<12 {
            let wait = try #require(await rig.host.refusedReports.deadline) - rig.now.elapsed
            waits.append(wait)
            await rig.wait(wait)
        }
        let seconds = waits.map { $0 / .seconds(1) }
        #expect(seconds == [1, 1, 1, 1, 1, 2, 4, 8, 16, 30, 30, 30])
        rig.store.fail(with: nil)
        _ = try await rig.host.perform(.goLive, from: ann)
        await rig.wait(FileReports.retryInterval)
        #expect(told == ["recording.ended"])
    }

    @Test func `waits for a commit that fails, and is not lost with it`() async throws {
        try await create()
        rig.store.hold()
        let (host, ann) = (rig.host, ann)
        let live = try await rig.decide { try await host.perform(.goLive, from: ann) }
        await rig.host.report(recording: file("r"))
        rig.store.fail(with: .unavailable("full"))
        rig.store.release()
        await #expect(throws: StageRefusal.self) { _ = try await live.value }
        rig.store.fail(with: nil)
        await rig.wait(.seconds(1))
        #expect(told == ["recording.ended"])
        #expect(await rig.host.snapshot.state == .backstage, "nobody asked for that again")
    }

    @Test func `keeps the host of an ended stream until it is stored`() async throws {
        try await create()
        _ = try await rig.host.perform(.end, from: ann)
        rig.store.fail(with: .unavailable("full"))
        await rig.host.report(recording: file("r"))
        await rig.wait(.seconds(20))
        #expect(await rig.host.closeIfIdle() == nil)
        rig.store.fail(with: nil)
        await rig.wait(.seconds(1))
        #expect(told == ["recording.ended"])
        #expect(await rig.host.closeIfIdle() == .ended)
    }

    /// A file may be complete while the stream's next host is still being read.
    @Test func `waits for the next host if it comes to one that has closed`() async throws {
        try await create()
        await rig.host.close(.unavailable)
        #expect(await rig.host.closeIfIdle() == .ended)
        await rig.host.report(recording: file("r"))
        await rig.host.report(clip: file("c"))
        #expect(told == [])
        #expect(await rig.host.closeIfIdle() == nil)
        let next = try await rig.restarted(reportsEvents: true)
        await next.inherit(await rig.host.handOverReports())
        #expect(await rig.host.closeIfIdle() == .ended)
        rig.pass(FileReports.retryInterval)
        await next.tick()
        #expect(told == ["recording.ended", "clip.ready"])
    }
}
