import Base
import Interaction
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// Comments that are older than those in memory.
@Suite(.timeLimit(.minutes(10))) struct CommentArchives {
    private let rig: HostRig
    private let ann = HostRig.ann
    private let bob = HostRig.bob

    init() throws {
        rig = try HostRig()
    }

    private func goLive() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: ann)
    }

    /// Each by somebody else, so that nobody is too fast.
    private func write(_ numbers: ClosedRange<Int>) async throws {
        for number in numbers {
            let author = HostRig.sender("v\(number)", .viewer)
            _ = try await rig.host.perform(.comment(key: "k", text: "number \(number)"), from: author)
        }
    }

    private func restarted() async throws -> StreamHost {
        let stored = try #require(try await rig.store.load(.one(rig.host.id)).first)
        return try StreamHost(
            stored, HostRig.environment(rig.store, rig.directory, clock: rig.clock, effects: rig.effects))
    }

    private func numbers(_ page: JSON) throws -> [Int] {
        guard case .array(let comments) = page["comments"] else { throw StageRefusal.unknownStream }
        return comments.compactMap { if case .number(let number) = $0["number"] { Int(number) } else { nil } }
    }

    /// All that somebody can page to, from the newest back.
    private func backwards(
        _ host: StreamHost, as reader: Stage.Sender? = nil, limit: Int = 200
    ) async throws -> [Int] {
        var (found, isMore): ([Int], Bool) = ([], true)
        while isMore {
            let page = try await host.comments(before: found.first, after: nil, limit: limit, as: reader)
            let part = try numbers(page)
            isMore = page["more"] == .bool(true)
            #expect(part.count == limit || !isMore)
            guard !part.isEmpty else { break }
            found = part + found
        }
        return found
    }

    /// The same from the first one on.
    private func forwards(_ host: StreamHost, as reader: Stage.Sender? = nil) async throws -> [Int] {
        var (found, isMore): ([Int], Bool) = ([], true)
        while isMore {
            let page = try await host.comments(before: nil, after: found.last ?? 0, limit: 170, as: reader)
            found += try numbers(page)
            isMore = page["more"] == .bool(true)
        }
        return found
    }

    @Test func `comments can be paged back to the first one, also after a restart`() async throws {
        try await goLive()
        try await write(1...2_500)
        for host in [rig.host, try await restarted()] {
            #expect(try await backwards(host) == Array(1...2_500))
            #expect(try await backwards(host, limit: 199) == Array(1...2_500))
            #expect(try await forwards(host) == Array(1...2_500))
            // Where memory and archive meet, wherever that is.
            for after in stride(from: 1_200, to: 1_600, by: 37) {
                let page = try await host.comments(before: after + 101, after: after, limit: 200)
                #expect(try numbers(page) == Array(after + 1...after + 100) && page["more"] == .bool(false))
            }
            let first = try await host.comments(before: 3, after: nil, limit: 2)
            #expect(try numbers(first) == [1, 2] && first["more"] == .bool(false))
        }
    }

    @Test func `a deleted comment is never shown again, whoever deleted it`()
        async throws
    {
        try await goLive()
        try await write(1...20)
        _ = try await rig.host.perform(.delete(3), from: ann)
        try await write(21...1_400)
        #expect(try await rig.store.archive(of: rig.host.id, ArchiveQuery(limit: 9_999)).count > 100)
        let (cid, mod) = (
            HostRig.sender("cid", .viewer), HostRig.sender("v9", .viewer)
        )
        await #expect(throws: StageRefusal.interaction(.notModerator)) {
            _ = try await rig.host.perform(.delete(5), from: cid)
        }
        await #expect(throws: StageRefusal.interaction(.unknownComment)) {
            _ = try await rig.host.perform(.delete(3), from: ann)
        }
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        _ = try await rig.host.perform(.delete(5), from: ann)
        _ = try await rig.host.perform(.delete(9), from: mod)
        await rig.wait(.milliseconds(500))
        let told = follower.state.withLock { $0.messages.compactMap { $0["deleted"] } }
        #expect(told.contains(.array([.number(5)])))
        let audit = try await rig.host.audit(as: ann)
        guard case .array(let entries) = audit["entries"] else { throw StageRefusal.unknownStream }
        #expect(entries.map { $0["text"] } == [.string("number 3"), .string("number 5")])
        for host in [rig.host, try await restarted()] {
            for reader in [nil, ann, mod] {
                let seen = try await backwards(host, as: reader)
                #expect(seen == (1...1_400).filter { ![3, 5, 9].contains($0) })
            }
        }
        await #expect(throws: StageRefusal.interaction(.unknownComment)) {
            _ = try await rig.host.perform(.delete(5), from: ann)
        }
    }

    @Test func `comments of a shadow-banned author are shown to the author alone`() async throws {
        try await goLive()
        let shadow = HostRig.sender("v2", .viewer)
        _ = try await rig.host.perform(.silence(shadow.id, seconds: 60, isShadow: true), from: ann)
        try await write(1...1_400)
        for host in [rig.host, try await restarted()] {
            #expect(try await backwards(host, as: shadow) == Array(1...1_400))
            for reader in [nil, ann, bob] {
                #expect(try await backwards(host, as: reader) == [1] + Array(3...1_400))
            }
        }
    }

    @Test func `comments are deleted when they are too old, and with their programme`() async throws {
        func create() async throws {
            _ = try await rig.host.create(host: ann.id, name: "Ann", edit: StageEdit(), origin: .published)
        }
        try await create()
        _ = try await rig.host.perform(.goLive, from: ann)
        try await write(1...600)
        await rig.wait(.seconds(9))
        let time = rig.clock.value.wall
        #expect(try await rig.host.forgetComments(before: time.advanced(bySeconds: -15)) == 0)
        try await write(601...2_000)
        #expect(try await rig.host.forgetComments(before: time) == 600)
        #expect(try await rig.host.forgetComments(before: time) == 0)
        #expect(try await backwards(rig.host) == Array(601...2_000))
        _ = try await rig.host.perform(.end, from: ann)
        #expect(try await forwards(try await restarted()) == Array(601...2_000))
        try await create()
        try await rig.host.settled()
        #expect(try await rig.store.archive(of: rig.host.id, ArchiveQuery(limit: 9)).isEmpty)
        #expect(try await backwards(rig.host).isEmpty)
    }

    @Test func `a request for comments fails while the store cannot be read`() async throws {
        try await goLive()
        try await write(1...1_400)
        await rig.store.close()
        await #expect(throws: StageRefusal.storage("\(StoreError.closed)")) {
            _ = try await rig.host.comments(before: 5, after: nil, limit: 9)
        }
        let page = try await rig.host.comments(before: nil, after: nil, limit: 9)
        #expect(try numbers(page) == Array(1_392...1_400))
    }
}
