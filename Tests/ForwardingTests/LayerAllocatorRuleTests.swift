import Base
import TestSupport
import Testing

@testable import Forwarding

/// What holds of every division of a path's room, whatever is wanted of it.
@Suite struct `A division of room` {
    private typealias Wish = LayerAllocator.Wish

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    /// Up to six pictures of which none is sent yet, and the first is no preview.
    private func makeWishes(_ random: inout SeededGenerator) -> [Wish] {
        var wishes: [Wish] = []
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            var steps: [Int] = []
            var bitrate = Int.random(in: 30_000...400_000, using: &random)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                steps.append(bitrate)
                bitrate += Int.random(in: 1...1_500_000, using: &random)
            }
            wishes.append(
                Wish(
                    steps: steps, granted: nil, isLast: Int.random(in: 0..<4, using: &random) == 0,
                    isNew: Bool.random(using: &random)))
        }
        wishes[0].isLast = false
        return wishes
    }

    private func divide(
        _ allocator: inout LayerAllocator, _ wishes: [Wish], _ available: Int, isOverused: Bool = false,
        at milliseconds: Int64
    ) -> [Int?] {
        allocator.allocate(
            wishes, available: available, isLimited: true, isOverused: isOverused, at: time(milliseconds))
    }

    /// The same wishes with what they got.
    private func sent(_ grants: [Int?], of wishes: [Wish]) -> [Wish] {
        zip(wishes, grants).map { Wish(steps: $0.steps, granted: $1, isLast: $0.isLast) }
    }

    private func cost(_ grants: [Int?], of wishes: [Wish]) -> Int {
        zip(wishes, grants).reduce(0) { sum, pair in sum + (pair.1.map { pair.0.steps[$0] } ?? 0) }
    }

    private func isBest(_ grant: Int?, of wish: Wish) -> Bool { grant == wish.steps.count - 1 }

    @Test(arguments: UInt64(0)..<200) func `a new picture begins with the first step that fits into the room`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        let wishes = makeWishes(&random)
        let available = Int.random(in: 0...6_000_000, using: &random)
        var allocator = LayerAllocator()
        let grants = divide(&allocator, wishes, available, at: 0)
        #expect(grants.count == wishes.count)
        let total = cost(grants, of: wishes)
        #expect(total <= available)
        let pairs = Array(zip(wishes, grants))
        if let first = pairs.first(where: { !$0.0.isLast }), first.0.steps[0] * 110 / 100 <= available {
            #expect(first.1 != nil, "the most important picture")
        }
        let hasPreview = pairs.contains { $0.0.isLast && $0.1 != nil }
        let hasRoomLeft = pairs.allSatisfy { $0.0.isLast || isBest($0.1, of: $0.0) }
        #expect(!hasPreview || hasRoomLeft, "a preview gets what all others leave")
        let isAllBest = pairs.allSatisfy { isBest($0.1, of: $0.0) }
        #expect((allocator.wanted == nil) == isAllBest, "there is more to try for")
        if let wanted = allocator.wanted { #expect(wanted > total) }
    }

    @Test(arguments: UInt64(0)..<100) func `stays as it is while nothing changes`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let wishes = makeWishes(&random)
        let available = Int.random(in: 0...6_000_000, using: &random)
        var allocator = LayerAllocator()
        let grants = divide(&allocator, wishes, available, at: 0)
        for second in Int64(1)...30 {
            let again = divide(&allocator, sent(grants, of: wishes), available, at: second * 1_000)
            #expect(again == grants, "after \(second) s")
        }
    }

    @Test(arguments: UInt64(0)..<100) func `begins nothing while the path's queue grows`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let wishes = makeWishes(&random)
        var allocator = LayerAllocator()
        let grants = divide(&allocator, wishes, 50_000_000, isOverused: true, at: 0)
        #expect(grants.holdsNothing)
    }

    /// The lowest of each is kept for a moment, because an estimate may be wrong; previews are not.
    @Test(arguments: UInt64(0)..<100) func `falls to the least where there is no room, and then to nothing`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        let wishes = makeWishes(&random)
        var allocator = LayerAllocator()
        var grants = divide(&allocator, wishes, 50_000_000, at: 0)
        let isAllBest = zip(wishes, grants).allSatisfy { isBest($1, of: $0) }
        #expect(isAllBest)
        let least: [Int?] = wishes.map { $0.isLast ? nil : 0 }
        for milliseconds in [20_000, 20_400, 20_799] as [Int64] {
            grants = divide(&allocator, sent(grants, of: wishes), 0, at: milliseconds)
            #expect(grants == least, "at \(milliseconds) ms")
        }
        grants = divide(&allocator, sent(grants, of: wishes), 0, at: 20_800)
        #expect(grants.holdsNothing)
        // Nothing begins for a moment after a step down, and everything does later.
        grants = divide(&allocator, sent(grants, of: wishes), 50_000_000, at: 20_801)
        #expect(grants.holdsNothing)
        grants = divide(&allocator, sent(grants, of: wishes), 50_000_000, at: 30_000)
        #expect(!grants.contains(nil))
    }
}

extension [Int?] {
    /// Whether no picture got anything.
    fileprivate var holdsNothing: Bool { allSatisfy { $0 == nil } }
}
