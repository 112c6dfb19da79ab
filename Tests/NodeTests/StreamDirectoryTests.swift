import Base
import TestSupport
import Testing

@testable import Node

@Suite struct `The directory of streams` {
    private let directory = StreamDirectory()

    private func snapshot(_ number: Int, _ state: StreamState, startedAt: Int64) throws -> StreamSnapshot {
        var snapshot = StreamSnapshot(waitingFor: try #require(StreamID("s\(number)")))
        snapshot.state = state
        snapshot.createdAt = WallTime(milliseconds: 1)
        snapshot.startedAt = WallTime(milliseconds: startedAt)
        return snapshot
    }

    private func pages(of limit: Int, isOnlyLive: Bool = false) -> [StreamID] {
        var (ids, last): ([StreamID], StreamSnapshot.ListOrder?) = ([], nil)
        while true {
            let page = directory.page(after: last, limit: limit, isOnlyLive: isOnlyLive) { _ in true }
            #expect(page.streams.count <= limit)
            ids += page.streams.map(\.id)
            last = page.streams.last?.listOrder
            guard page.isMore, last != nil else { return ids }
        }
    }

    @Test(arguments: 1...5) func `is in order, whatever happens to streams`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var known: [StreamID: StreamSnapshot] = [:]
        for _ in 0..<2_000 {
            let state = StreamState.allCases.randomElement(using: &random) ?? .live
            let stream = try snapshot(
                Int.random(in: 0..<600, using: &random), state,
                startedAt: Int64.random(in: 0..<50, using: &random))
            if Int.random(in: 0..<5, using: &random) == 0 {
                directory.remove(stream.id)
                known[stream.id] = nil
            } else {
                directory.update(stream)
                known[stream.id] = stream
            }
        }
        let sorted = known.values.sorted { $0.listOrder < $1.listOrder }
        #expect(pages(of: 7) == sorted.map(\.id))
        #expect(pages(of: 10_000) == sorted.map(\.id))
        #expect(pages(of: 7, isOnlyLive: true) == sorted.filter { $0.state == .live }.map(\.id))
        #expect(Set(directory.everything.map(\.id)) == Set(known.keys))
    }

    /// Anybody may ask for it, and a server that has been there for long has seen many.
    @Test func `looks at few streams for a short part of a long list`() throws {
        for number in 0..<10_000 {
            directory.update(try snapshot(number, number < 5 ? .live : .ended, startedAt: Int64(number)))
        }
        var looks = 0
        let page = directory.page(after: nil, limit: 20) { _ in
            looks += 1
            return true
        }
        #expect(page.streams.count == 20 && page.isMore)
        #expect(looks == 21)
        let rest = directory.page(after: page.streams.last?.listOrder, limit: 20) { _ in
            looks += 1
            return true
        }
        #expect(rest.streams.first?.id == StreamID("s9984"))
        #expect(looks == 42)
        let live = directory.page(after: nil, limit: 20, isOnlyLive: true) { _ in
            looks += 1
            return true
        }
        #expect(live.streams.count == 5 && !live.isMore)
        #expect(looks == 47)
        // However long it takes to find one.
        let wanted = directory.page(after: nil, limit: 20) { $0.id == StreamID("s5") }
        #expect(wanted.streams.map(\.id) == [StreamID("s5")].compactMap { $0 })
        #expect(!wanted.isMore)
    }

    @Test func `goes on where a part ended, also when that stream is gone`() throws {
        for number in 0..<4 { directory.update(try snapshot(number, .ended, startedAt: Int64(10 - number))) }
        let page = directory.page(after: nil, limit: 2) { _ in true }
        #expect(page.streams.map(\.id.description) == ["s0", "s1"])
        directory.remove(try #require(page.streams.last?.id))
        let rest = directory.page(after: page.streams.last?.listOrder, limit: 2) { _ in true }
        #expect(rest.streams.map(\.id.description) == ["s2", "s3"])
        #expect(!rest.isMore)
    }

    @Test func `forgets streams that were made by publishing, and those that ended first`() throws {
        for number in 0..<6 {
            var stream = try snapshot(number, number == 5 ? .live : .ended, startedAt: 1)
            stream.isPublished = number < 2
            stream.endedAt = number == 5 ? nil : WallTime(milliseconds: Int64(number) * 100)
            directory.update(stream)
        }
        func names() -> [String] { pages(of: 10).map(\.description).sorted() }
        directory.forgetEnded(by: WallTime(milliseconds: 0), keeping: 10)
        #expect(names() == ["s1", "s2", "s3", "s4", "s5"])
        directory.forgetEnded(by: WallTime(milliseconds: 500), keeping: 2)
        #expect(names() == ["s3", "s4", "s5"])
    }

    /// What is announced of them has to end first, or their hosts would stay open for ever.
    @Test func `keeps ended streams that are recorded, or in which viewers can go back`() throws {
        for number in 0..<3 {
            var stream = try snapshot(number, .ended, startedAt: 1)
            (stream.isPublished, stream.endedAt) = (true, WallTime(milliseconds: 1))
            (stream.isRecording, stream.isKept) = (number == 1, number == 2)
            directory.update(stream)
        }
        directory.forgetEnded(by: WallTime(milliseconds: 500), keeping: 0)
        #expect(pages(of: 10).map(\.description).sorted() == ["s1", "s2"])
    }
}
