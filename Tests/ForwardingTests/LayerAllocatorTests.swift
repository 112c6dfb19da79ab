import Base
import TestSupport
import Testing

@testable import Forwarding

@Suite struct `A layer allocator` {
    private typealias Wish = LayerAllocator.Wish
    private static let ladder = [150_000, 500_000, 1_700_000]

    private func time(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9) + 1_000_000_000)
    }

    /// What one picture gets, again and again.
    private func follow(
        _ allocator: inout LayerAllocator, _ granted: Int?, available: Int, isOverused: Bool = false,
        isWaiting: Bool = false, at seconds: Double
    ) -> Int? {
        allocator.allocate(
            [Wish(steps: Self.ladder, granted: granted, isWaiting: isWaiting)], available: available,
            isLimited: true, isOverused: isOverused, at: time(seconds))[0]
    }

    @Test func `steps down at once, as far as it must`() {
        var allocator = LayerAllocator()
        #expect(follow(&allocator, 2, available: 550_000, at: 0) == 1)
        #expect(follow(&allocator, 2, available: 200_000, at: 0) == 0)
    }

    @Test func `keeps what fits nearly`() {
        var allocator = LayerAllocator()
        #expect(follow(&allocator, 2, available: 1_520_000, at: 0) == 2)
        #expect(follow(&allocator, 2, available: 1_500_000, at: 0) == 1)
        // A step that would only begin has to fit wholly.
        #expect(follow(&allocator, 2, available: 480_000, at: 0) == 0)
    }

    @Test func `leaves out the least only when it has not fitted for a while`() {
        var allocator = LayerAllocator()
        #expect(follow(&allocator, 0, available: 110_000, at: 0) == 0)
        #expect(follow(&allocator, 0, available: 50_000, at: 0) == 0)
        #expect(follow(&allocator, 0, available: 50_000, at: 0.7) == 0)
        #expect(follow(&allocator, 0, available: 80_000, at: 2.4) == 0)
        #expect(follow(&allocator, 0, available: 80_000, at: 2.6) == nil)
        var other = LayerAllocator()
        #expect(follow(&other, 0, available: 50_000, at: 0) == 0)
        #expect(follow(&other, 0, available: 50_000, at: 0.9) == nil)
    }

    @Test func `rises where there is room to spare, and not while the queue grows`() {
        var allocator = LayerAllocator()
        #expect(follow(&allocator, 0, available: 540_000, at: 0) == 0)
        #expect(follow(&allocator, 0, available: 560_000, isOverused: true, at: 1) == 0)
        #expect(follow(&allocator, 0, available: 560_000, at: 2) == 1)
        #expect(follow(&allocator, nil, available: 3_000_000, at: 3) == 2)
    }

    @Test func `waits longer each time that a step up fails`() {
        var allocator = LayerAllocator()
        var now = 0.0
        var waits: [Double] = []
        #expect(follow(&allocator, 1, available: 2_000_000, at: now) == 2)
        for _ in 0..<6 {
            now += 1
            #expect(follow(&allocator, 2, available: 600_000, at: now) == 1)
            let fell = now
            while follow(&allocator, 1, available: 2_000_000, at: now) == 1 { now += 0.5 }
            waits.append(now - fell)
        }
        #expect(waits == [5, 10, 20, 40, 60, 60])
    }

    /// 720p failed; that says nothing against 360p.
    @Test func `a step below the failed one is tried again after two seconds`() {
        var allocator = LayerAllocator()
        #expect(follow(&allocator, 1, available: 2_000_000, at: 0) == 2)
        #expect(follow(&allocator, 2, available: 200_000, at: 1) == 0)
        #expect(follow(&allocator, 0, available: 2_000_000, at: 2.9) == 0)
        #expect(follow(&allocator, 0, available: 2_000_000, at: 3) == 1)
        #expect(follow(&allocator, 1, available: 2_000_000, at: 5.9) == 1)
        #expect(follow(&allocator, 1, available: 2_000_000, at: 6) == 2)
    }

    /// A step that was far too much would have failed sooner.
    @Test func `a path that becomes much slower is not a failed step`() {
        var slower = LayerAllocator()
        #expect(follow(&slower, 1, available: 2_000_000, at: 0) == 2)
        #expect(follow(&slower, 2, available: 600_000, at: 6) == 1)
        #expect(!slower.hasFailed(at: time(6)))
        var full = LayerAllocator()
        #expect(follow(&full, 1, available: 2_000_000, at: 0) == 2)
        #expect(follow(&full, 2, available: 1_400_000, at: 6) == 1)
        #expect(full.hasFailed(at: time(6)))
    }

    @Test func `only a step that was sent can fail`() {
        var allocator = LayerAllocator()
        #expect(follow(&allocator, 2, available: 600_000, at: 0) == 1)
        #expect(!allocator.hasFailed(at: time(0)), "the path became slower")
        #expect(follow(&allocator, 1, available: 2_000_000, at: 4) == 2)
        #expect(follow(&allocator, 2, available: 600_000, isWaiting: true, at: 5) == 1)
        #expect(!allocator.hasFailed(at: time(5)), "it never began")
        #expect(follow(&allocator, 1, available: 2_000_000, at: 6.9) == 1)
        #expect(follow(&allocator, 1, available: 2_000_000, at: 7) == 2)
        #expect(follow(&allocator, 2, available: 600_000, at: 9) == 1)
        #expect(allocator.hasFailed(at: time(13)))
        #expect(!allocator.hasFailed(at: time(14)))
    }

    /// A step that was never sent neither counts as another failure nor makes up for an earlier one.
    @Test func `a step that was granted but never sent keeps its waiting time`() {
        var allocator = LayerAllocator()
        #expect(follow(&allocator, 1, available: 2_000_000, at: 0) == 2)
        #expect(follow(&allocator, 2, available: 600_000, at: 1) == 1)
        #expect(follow(&allocator, 1, available: 2_000_000, at: 7) == 2)
        #expect(follow(&allocator, 2, available: 600_000, isWaiting: true, at: 8) == 1)
        #expect(follow(&allocator, 1, available: 2_000_000, at: 12.5) == 1)
        #expect(follow(&allocator, 1, available: 2_000_000, at: 13) == 2)
    }

    /// A viewer who swipes gets the next stream at once, even if the path has no room for all of it.
    @Test func `a new picture is not held back by an earlier failure`() {
        var allocator = LayerAllocator()
        let grants = allocator.allocate(
            [Wish(steps: Self.ladder, granted: 2, isNew: true)], available: 600_000, isLimited: true,
            isOverused: false, at: time(0))
        #expect(grants == [1])
        #expect(follow(&allocator, 1, available: 2_000_000, at: 0.1) == 2)
    }

    @Test func `goes on with what is sent where the path has shown no limit`() {
        var allocator = LayerAllocator()
        let grants = allocator.allocate(
            [Wish(steps: Self.ladder, granted: 2)], available: 300_000, isLimited: false, isOverused: false,
            at: time(0))
        #expect(grants == [2])
        #expect(allocator.wanted == nil)
    }

    @Test func `every picture gets its lowest layer before any gets its best`() {
        var allocator = LayerAllocator()
        let wishes = [Wish(steps: Self.ladder, granted: nil), Wish(steps: Self.ladder, granted: nil)]
        let grants = allocator.allocate(
            wishes, available: 1_000_000, isLimited: true, isOverused: false, at: time(0))
        #expect(grants == [1, 0])
        #expect(allocator.wanted == (500_000 + 150_000 + 1_200_000) * 110 / 100)
    }

    /// When somebody else is pinned, the room goes to them, and no step counts as failed.
    @Test func `the picture that is now first takes the room of the others`() {
        var allocator = LayerAllocator()
        let wishes = [Wish(steps: Self.ladder, granted: 0), Wish(steps: Self.ladder, granted: 1)]
        let grants = allocator.allocate(
            wishes, available: 710_000, isLimited: true, isOverused: false, at: time(0))
        #expect(grants == [1, 0])
        let back = [Wish(steps: Self.ladder, granted: 0), Wish(steps: Self.ladder, granted: 1)]
        #expect(
            allocator.allocate(back, available: 710_000, isLimited: true, isOverused: false, at: time(0.1))
                == [1, 0])
        #expect(!allocator.hasFailed(at: time(0.1)))
    }

    @Test func `a preview gets room only after all pictures that are looked at`() {
        var allocator = LayerAllocator()
        let wishes = [
            Wish(steps: Self.ladder, granted: 2), Wish(steps: [150_000], granted: 0, isLast: true),
        ]
        let little = allocator.allocate(
            wishes, available: 1_000_000, isLimited: true, isOverused: false, at: time(0))
        #expect(little == [1, nil])
        var other = LayerAllocator()
        let much = other.allocate(
            wishes, available: 2_000_000, isLimited: true, isOverused: false, at: time(0))
        #expect(much == [2, 0])
        #expect(other.wanted == nil)
    }

    // MARK: Paths that others use, too

    @Test func `steps down while the queue does not drain`() {
        var allocator = LayerAllocator()
        var granted: Int? = 2
        var falls: [Double] = []
        for turn in 0...100 {
            let now = Double(turn) / 10
            let next = follow(&allocator, granted, available: 1_700_000, isOverused: true, at: now)
            if next != granted { falls.append(now) }
            granted = next
        }
        // Down to the least, which costs others little.
        #expect(granted == 0)
        #expect(falls.count == 2 && abs(falls[0] - 2) < 0.15 && abs(falls[1] - 4) < 0.15, "\(falls)")
    }

    @Test func `stays where the queue drains again and again`() {
        var allocator = LayerAllocator()
        for turn in 0..<300 {
            let granted = follow(
                &allocator, 2, available: 1_700_000, isOverused: turn % 10 < 5, at: Double(turn) / 10)
            #expect(granted == 2)
        }
    }

    /// What a viewer gets, each tenth of a second, whose estimate leaves room for nothing.
    private func compete(
        _ allocator: inout LayerAllocator, burstRate: Int?, from start: Double = 0, for seconds: Int,
        loses: (Double) -> Bool = { _ in false }
    ) -> [Double] {
        var granted: Int?
        var begun: [Double] = []
        for turn in 0..<(seconds * 10) {
            let now = start + Double(turn) / 10
            let next = allocator.allocate(
                [Wish(steps: Self.ladder, granted: granted)], available: 50_000, isLimited: true,
                isOverused: true, losesSome: granted != nil && loses(now), burstRate: burstRate, at: time(now)
            )[0]
            if next != nil, granted == nil { begun.append(now) }
            granted = next
        }
        return begun
    }

    @Test func `tries the least against others, and keeps it while it arrives`() {
        var allocator = LayerAllocator()
        let begun = compete(&allocator, burstRate: 2_000_000, for: 60)
        #expect(begun.count == 1 && abs(begun[0] - 5) < 0.15, "\(begun)")
    }

    @Test func `tries later each time that it is lost`() {
        var allocator = LayerAllocator()
        let begun = compete(&allocator, burstRate: 2_000_000, for: 300) { _ in true }
        let pauses = zip(begun, begun.dropFirst()).map { $1 - $0 }
        #expect(begun.count >= 5 && zip(pauses, pauses.dropFirst()).allSatisfy { $0 < $1 + 1 }, "\(begun)")
        #expect(pauses.last ?? 0 > 55, "\(pauses)")
    }

    /// A viewer who wanted no picture, or only a preview, did not lack one.
    @Test(arguments: [[], [LayerAllocator.Wish(steps: [150_000], granted: nil, isLast: true)]])
    func `waits as long where no picture was wanted before`(wishes: [LayerAllocator.Wish]) {
        var allocator = LayerAllocator()
        for turn in 0..<200 {
            _ = allocator.allocate(
                wishes, available: 50_000, isLimited: true, isOverused: false, burstRate: 2_000_000,
                at: time(Double(turn) / 10))
        }
        let begun = compete(&allocator, burstRate: 2_000_000, from: 20, for: 20)
        #expect(begun.count == 1 && abs(begun[0] - 25) < 0.15, "\(begun)")
    }

    @Test func `tries nothing where the path itself is too slow, or where that is not known`() {
        for rate in [nil, 60_000, 200_000] {
            var allocator = LayerAllocator()
            #expect(compete(&allocator, burstRate: rate, for: 120).isEmpty)
        }
    }

    /// Whatever is asked, nothing traps, and what is chosen is among what there is.
    @Test func `takes any numbers`() {
        var random = SeededGenerator(seed: 1)
        var allocator = LayerAllocator()
        for turn in 0..<2_000 {
            let wishes = (0..<Int.random(in: 0...5, using: &random)).map { _ in
                let steps = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                    Int.random(in: 0...40_000_000, using: &random)
                }
                let granted = Int.random(in: -1..<steps.count, using: &random)
                return Wish(
                    steps: steps.sorted(), granted: granted < 0 ? nil : granted,
                    isLast: Bool.random(using: &random))
            }
            let grants = allocator.allocate(
                wishes, available: Int.random(in: 0...100_000_000, using: &random),
                isLimited: Bool.random(using: &random), isOverused: Bool.random(using: &random),
                isLossy: Bool.random(using: &random), losesSome: Bool.random(using: &random),
                burstRate: [nil, 0, .max].randomElement(using: &random) ?? nil, at: time(Double(turn) / 10))
            #expect(grants.count == wishes.count)
            for (wish, grant) in zip(wishes, grants) {
                if let grant { #expect(wish.steps.indices.contains(grant)) }
            }
        }
    }
}
