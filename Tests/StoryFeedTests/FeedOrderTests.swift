import Base
import TestSupport
import Testing

@testable import StoryFeed

@Suite struct FeedOrder {
    @Test func `puts pinned streams first, then the higher score, then the lower name`() throws {
        var rig = FeedRig()
        for number in [3, 1, 2] { _ = try rig.feed.goLive(FeedRig.item(number)) }
        var twin = FeedItem(id: try #require(StreamID("s15")), startedAt: FeedRig.item(2).startedAt)
        _ = try rig.feed.goLive(twin)
        #expect(rig.order == [1, 15, 2, 3])
        _ = try rig.feed.pin(FeedRig.id(3), at: 2)
        _ = try rig.feed.pin(FeedRig.id(2), at: 1)
        #expect(rig.order == [2, 3, 1, 15])
        twin.boost = 1_000
        #expect(try rig.feed.edit(twin) == [.moved(twin.id, after: FeedRig.id(3))])
        #expect(rig.order == [2, 3, 15, 1])
        _ = try rig.feed.pin(FeedRig.id(2), at: nil)
        #expect(rig.order == [3, 15, 1, 2])
    }

    @Test func `scores doublings of the audience, hours and boost by their weights`() {
        let weights = FeedWeights(perDoublingOfViewers: 10, perHour: 5, perBoost: 3)
        var item = FeedItem(id: FeedRig.id(1), startedAt: WallTime(milliseconds: 0))
        #expect(weights.score(item) == 0)
        item.viewers = 1
        #expect(weights.score(item) == 10 * 1_024)
        item.viewers = 1_023
        #expect(weights.score(item) == 100 * 1_024)
        item.boost = -2
        #expect(weights.score(item) == 94 * 1_024)
        item.startedAt = WallTime(milliseconds: 7_200_000)
        #expect(weights.score(item) == 104 * 1_024)
    }

    @Test func `takes absurd numbers without a trap`() throws {
        let weights = FeedWeights(perDoublingOfViewers: .max, perHour: .min, perBoost: .max)
        for number in [Int.min, -1, 0, .max] {
            var item = FeedItem(id: FeedRig.id(1), startedAt: WallTime(milliseconds: Int64(number)))
            item.viewers = number
            item.boost = number
            item.pinnedPlace = number
            _ = FeedRank(item, serial: 1, weights: weights)
        }
        var last: Int64 = -1
        for viewers in 0..<5_000 {
            let doublings = FeedWeights.doublings(of: viewers)
            #expect(doublings > last || viewers > 1_024 && doublings >= last)
            last = doublings
        }
    }

    @Test func `looks at viewer counts once an interval`() throws {
        var rig = FeedRig(streams: 3)
        #expect(rig.feed.deadline == nil)
        rig.feed.setViewers(FeedRig.id(3), 1_000)
        #expect(rig.feed.item(FeedRig.id(3))?.viewers == 1_000)
        #expect(rig.order == [1, 2, 3])
        let count = FeedChange.ViewerCount(stream: FeedRig.id(3), viewers: 1_000)
        #expect(
            rig.feed.advance(to: rig.now) == [.viewersChanged([count]), .moved(FeedRig.id(3), after: nil)])
        #expect(rig.order == [3, 1, 2])

        rig.feed.setViewers(FeedRig.id(3), 0)
        #expect(rig.feed.deadline == rig.now + .seconds(2))
        rig.pass(.milliseconds(1_999))
        #expect(rig.feed.advance(to: rig.now).isEmpty)
        rig.pass(.milliseconds(1))
        #expect(rig.feed.advance(to: rig.now).count == 2)
        #expect(rig.order == [1, 2, 3])
        #expect(rig.feed.deadline == nil)
    }

    @Test func `scores a bounded number at a time, those that wait longest first`() {
        var rig = FeedRig(streams: 5) { $0.rescoreLimit = 2 }
        for number in [5, 4, 3] { rig.feed.setViewers(FeedRig.id(number), 1_000) }
        _ = rig.feed.advance(to: rig.now)
        #expect(rig.order == [4, 5, 1, 2, 3])
        rig.feed.setViewers(FeedRig.id(5), 0)
        rig.feed.setViewers(FeedRig.id(5), 1_000_000)
        #expect(rig.feed.deadline == rig.now + .milliseconds(200))
        rig.pass(.milliseconds(200))
        _ = rig.feed.advance(to: rig.now)
        #expect(rig.order == [5, 3, 4, 1, 2])
        #expect(rig.feed.deadline == nil)
    }

    @Test func `forgets to score what has ended`() {
        var rig = FeedRig(streams: 3) { $0.streamLimit = 3 }
        for _ in 0..<100 {
            rig.feed.setViewers(FeedRig.id(1), 1)
            _ = rig.feed.end(FeedRig.id(1))
            _ = try? rig.feed.goLive(FeedRig.item(1))
        }
        #expect(rig.feed.unscored.count <= 6)
        #expect(rig.feed.advance(to: rig.now).isEmpty)
    }

    @Test func `does not change when the same is said again`() throws {
        var rig = FeedRig(streams: 3)
        let version = rig.feed.version
        #expect(try rig.feed.goLive(FeedRig.item(2)).isEmpty)
        #expect(try rig.feed.pin(FeedRig.id(1), at: nil).isEmpty)
        #expect(try rig.feed.boost(FeedRig.id(1), by: 0).isEmpty)
        rig.feed.setViewers(FeedRig.id(1), 0)
        #expect(rig.feed.deadline == nil)
        #expect(rig.feed.version == version)
        #expect(rig.feed.end(FeedRig.id(2))?.change == .ended(FeedRig.id(2)))
        #expect(rig.feed.end(FeedRig.id(2)) == nil)
    }

    @Test func `tells a new preview once`() {
        var rig = FeedRig(streams: 1)
        let preview = FeedPreview(
            width: 360, height: 640, takenAt: WallTime(milliseconds: 5), blurHash: "LKO2?U")
        #expect(rig.feed.setPreview(FeedRig.id(1), preview) == [.previewed(FeedRig.id(1), preview)])
        #expect(rig.feed.setPreview(FeedRig.id(1), preview).isEmpty)
        #expect(rig.feed.setPreview(FeedRig.id(2), preview).isEmpty)
    }

    @Test func `is refused more streams than it takes, and changes of what is not live`() throws {
        var rig = FeedRig(streams: 2) { $0.streamLimit = 2 }
        #expect(throws: StoryFeed.Refusal.full) { try rig.feed.goLive(FeedRig.item(3)) }
        #expect(throws: StoryFeed.Refusal.notLive) { try rig.feed.edit(FeedRig.item(3)) }
        #expect(throws: StoryFeed.Refusal.notLive) { try rig.feed.pin(FeedRig.id(3), at: 1) }
        #expect(throws: StoryFeed.Refusal.notLive) { try rig.feed.boost(FeedRig.id(3), by: 1) }
    }

    @Test func `knows the neighbours of a stream that has ended`() throws {
        var rig = FeedRig(streams: 4)
        let end = rig.feed.end(FeedRig.id(2))
        let rank = try #require(end).rank
        #expect(rig.feed.nearest(to: rank, .forward) { _ in true } == FeedRig.id(3))
        #expect(rig.feed.nearest(to: rank, .backward) { _ in true } == FeedRig.id(1))
        #expect(rig.feed.nearest(to: rank, .forward) { $0 == FeedRig.id(4) } == FeedRig.id(4))
        #expect(rig.feed.nearest(to: nil, .forward) { _ in true } == FeedRig.id(1))
        let last = rig.feed.rank(of: FeedRig.id(4))
        #expect(rig.feed.nearest(to: last, .forward) { _ in true } == nil)
    }

    @Test func `names many moves at once no more`() {
        var rig = FeedRig(streams: 10) { $0.namedMoveLimit = 3 }
        for number in 6...10 { rig.feed.setViewers(FeedRig.id(number), 1_000_000) }
        #expect(rig.feed.advance(to: rig.now).last == .reordered)
        #expect(rig.order == [6, 7, 8, 9, 10, 1, 2, 3, 4, 5])
    }

    /// What a client keeps that only hears of changes.
    private struct Follower {
        var streams: [StreamID] = []

        mutating func follow(_ change: FeedChange, of feed: StoryFeed) {
            switch change {
            case .added(let item, let predecessor): insert(item.id, after: predecessor)
            case .moved(let stream, let predecessor):
                streams.removeAll { $0 == stream }
                insert(stream, after: predecessor)
            case .ended(let stream): streams.removeAll { $0 == stream }
            case .reordered: streams = Array(feed.streams)
            case .edited, .viewersChanged, .previewed: break
            }
        }

        private mutating func insert(_ stream: StreamID, after predecessor: StreamID?) {
            let index = predecessor.flatMap { streams.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
            streams.insert(stream, at: index)
        }
    }

    @Test(arguments: 0..<20) func `is known to whoever follows its changes`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var rig = FeedRig { $0.namedMoveLimit = 12 }
        var follower = Follower()
        for _ in 0..<600 {
            let number = Int.random(in: 1...30, using: &random)
            var changes: [FeedChange] = []
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3: changes = (try? rig.feed.goLive(FeedRig.item(number))) ?? []
            case 3: changes = rig.feed.end(FeedRig.id(number)).map { [$0.change] } ?? []
            case 4:
                let place = Int.random(in: 0..<4, using: &random)
                changes = (try? rig.feed.pin(FeedRig.id(number), at: place > 2 ? nil : place)) ?? []
            case 5: changes = (try? rig.feed.boost(FeedRig.id(number), by: number % 7)) ?? []
            case 6..<9: rig.feed.setViewers(FeedRig.id(number), Int.random(in: 0..<5_000, using: &random))
            default:
                rig.pass(.milliseconds(700))
                changes = rig.feed.advance(to: rig.now)
            }
            for change in changes { follower.follow(change, of: rig.feed) }
            #expect(follower.streams == Array(rig.feed.streams))
            let ranks = rig.feed.order
            #expect(zip(ranks, ranks.dropFirst()).allSatisfy { $0 < $1 })
        }
    }
}
