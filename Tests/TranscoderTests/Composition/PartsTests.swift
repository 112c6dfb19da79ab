import Base
import Codecs
import Foundation
import TestSupport
import Testing

@testable import Transcoder

@Suite struct TileLayouts {
    @Test(arguments: 0...12) func `keep tiles apart and inside`(count: Int) {
        for (width, height) in [(1_280, 720), (720, 1_280), (640, 360), (320, 320), (360, 640)] {
            for layout in CompositionSettings.Layout.allCases {
                let frames = TileLayout.frames(count, width: width, height: height, layout: layout)
                #expect(frames.count == min(count, 9))
                for (index, frame) in frames.enumerated() {
                    #expect(frame.x >= 0 && frame.y >= 0 && frame.width > 0 && frame.height > 0)
                    #expect(frame.x + frame.width <= width && frame.y + frame.height <= height)
                    for number in [frame.x, frame.y, frame.width, frame.height] {
                        #expect(number.isMultiple(of: 2))
                    }
                    #expect(!frames[..<index].contains { $0.overlaps(frame) })
                }
            }
        }
    }

    @Test func `fill the picture with one`() {
        let frames = TileLayout.frames(1, width: 1_280, height: 720, layout: .grid)
        #expect(frames == [TileFrame(x: 0, y: 0, width: 1_280, height: 720)])
    }

    @Test func `put two side by side in a wide picture, and one above the other in a high one`() {
        let wide = TileLayout.frames(2, width: 1_280, height: 720, layout: .grid)
        #expect(wide[0].y == wide[1].y && wide[0].x < wide[1].x)
        let high = TileLayout.frames(2, width: 720, height: 1_280, layout: .grid)
        #expect(high[0].x == high[1].x && high[0].y < high[1].y)
    }

    @Test(
        arguments: zip([3, 4, 5, 6, 7, 9], [(2, 2), (2, 2), (3, 2), (3, 2), (3, 3), (3, 3)])
    )
    func `make rows and columns`(count: Int, grid: (columns: Int, rows: Int)) {
        let frames = TileLayout.frames(count, width: 1_280, height: 720, layout: .grid)
        #expect(Set(frames.map(\.y)).count == grid.rows)
        #expect(frames.prefix(grid.columns).map(\.y).allSatisfy { $0 == frames[0].y })
    }
}

@Suite struct TileAssignments {
    @Test func `keep people where they are while there is room`() {
        var assignment = TileAssignment()
        assignment.update(["ann", "bob"])
        assignment.update(["cid", "bob", "ann"])
        #expect(assignment.places == ["ann", "bob", "cid"])
        assignment.update(["cid", "ann"])
        #expect(assignment.places == ["ann", "cid"])
    }

    @Test func `begin in the order in which people came, whoever spoke`() {
        var assignment = TileAssignment()
        assignment.update(["bob", "ann"], arrived: ["ann", "bob"])
        #expect(assignment.places == ["ann", "bob"])
        assignment.update(["cid", "bob", "ann"], arrived: ["ann", "bob", "cid"], first: "cid")
        #expect(assignment.places == ["cid", "bob", "ann"])
    }

    @Test func `wait for whoever came first and whose picture is late`() {
        var assignment = TileAssignment()
        assignment.update(["bob"], arrived: ["ann", "bob", "cid"])
        assignment.update(["bob", "ann"], arrived: ["ann", "bob", "cid"])
        #expect(assignment.places == ["ann", "bob"])
        assignment.update(["cid", "bob"], arrived: ["ann", "bob", "cid"])
        assignment.update(["cid", "bob", "ann"], arrived: ["ann", "bob", "cid"])
        #expect(assignment.places == ["ann", "bob", "cid"])
    }

    @Test func `beyond nine show who spoke last, in the place of who did not`() {
        var assignment = TileAssignment()
        let all = (0..<12).map { "p\($0)" }
        assignment.update(all)
        #expect(assignment.places == Array(all.prefix(9)))
        // p11 speaks: p8 has to go.
        assignment.update(["p11"] + all.prefix(11))
        #expect(assignment.places == Array(all.prefix(8)) + ["p11"])
    }

    @Test func `are stable whatever happens`() {
        var random = SeededGenerator(seed: 9)
        var assignment = TileAssignment()
        for _ in 0..<2_000 {
            var ids = (0..<Int(random.next() % 15)).map { "p\($0)" }
            ids.shuffle(using: &random)
            let before = assignment.places
            assignment.update(ids)
            #expect(Set(assignment.places) == Set(ids.prefix(9)))
            #expect(assignment.places.count == min(ids.count, 9))
            guard ids.count > 9 else { continue }
            for (index, id) in before.enumerated()
            where index < assignment.places.count && ids.prefix(9).contains(id) && before.count == 9 {
                #expect(assignment.places[index] == id)
            }
        }
    }
}

@Suite struct Mixing {
    private static func block(_ value: Float) -> [Float] { [Float](repeating: value, count: 1_920) }

    @Test func `adds voices and leaves alone what fits`() {
        var mixer = Mixer()
        let mixed = mixer.mix([Self.block(0.25), Self.block(0.5)], count: 1_920)
        #expect(mixed.allSatisfy { abs($0 - 0.75) < 1e-6 })
        #expect(mixer.mix([], count: 1_920) == Self.block(0))
    }

    @Test func `holds what is too loud below the ceiling, and comes back`() {
        var mixer = Mixer()
        for _ in 0..<20 {
            let mixed = mixer.mix([Self.block(0.7), Self.block(0.7), Self.block(0.7)], count: 1_920)
            #expect(mixed.allSatisfy { abs($0) <= Mixer.ceiling })
        }
        for _ in 0..<30 { _ = mixer.mix([Self.block(0.1)], count: 1_920) }
        let mixed = mixer.mix([Self.block(0.1)], count: 1_920)
        #expect(mixed.allSatisfy { abs($0 - 0.1) < 1e-4 })
    }

    @Test func `does not jump while it makes things quieter`() {
        var mixer = Mixer()
        var last: Float = 0
        for step in 0..<40 {
            let loud = Float(step) / 20
            let mixed = mixer.mix([Self.block(loud)], count: 1_920)
            #expect(mixed.allSatisfy { $0.isFinite })
            #expect(abs((mixed.last ?? 0) - last) < 0.2)
            last = mixed.last ?? 0
        }
    }

    @Test func `survives numbers that are none`() {
        var mixer = Mixer()
        _ = mixer.mix([Self.block(.nan), Self.block(.infinity)], count: 1_920)
        #expect(mixer.mix([Self.block(0.5)], count: 1_920).allSatisfy { abs($0 - 0.5) < 0.01 })
    }
}

@Suite struct FrameClocks {
    @Test func `keep their pace over an hour`() {
        var clock = FrameClock(perSecond: 30, from: .zero)
        var ticks = 0
        var now = MonotonicTime.zero
        while now < MonotonicTime(nanoseconds: 3_600_000_000_000) {
            now = clock.next
            if clock.takeDue(at: now, patience: .milliseconds(33)) != nil { ticks += 1 }
        }
        #expect(ticks == 108_001)
        #expect(clock.skipped == 0)
    }

    @Test func `leave out what is over instead of making up for it`() {
        var clock = FrameClock(perSecond: 30, from: .zero)
        _ = clock.takeDue(at: .zero, patience: .milliseconds(33))
        let late = MonotonicTime(nanoseconds: 1_000_000_000)
        var due = 0
        while clock.takeDue(at: late, patience: .milliseconds(33)) != nil { due += 1 }
        #expect(due <= 2)
        #expect(clock.skipped > 25)
        #expect(clock.next > late)
    }

    @Test func `go on at another pace from the next turn on`() {
        var clock = FrameClock(perSecond: 30, from: .zero)
        for _ in 0..<3 { _ = clock.takeDue(at: clock.next, patience: .milliseconds(33)) }
        clock.change(perSecond: 15)
        #expect(clock.next == MonotonicTime(nanoseconds: 100_000_000))
        _ = clock.takeDue(at: clock.next, patience: .milliseconds(33))
        #expect(clock.next == MonotonicTime(nanoseconds: 100_000_000 + 66_666_666))
        // Of no pace there is one turn a second, and the same pace again changes nothing.
        clock.change(perSecond: 0)
        _ = clock.takeDue(at: clock.next, patience: .milliseconds(33))
        clock.change(perSecond: 1)
        #expect(clock.next == MonotonicTime(nanoseconds: 1_166_666_666) && clock.skipped == 0)
    }

    @Test(arguments: ChosenSeed.or(1...10))
    func `have each turn once, whatever their pace becomes`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var clock = FrameClock(perSecond: 30, from: .zero)
        var (now, last) = (MonotonicTime.zero, MonotonicTime(nanoseconds: -1))
        var skipped: UInt64 = 0
        for _ in 0..<2_000 {
            now = now + .milliseconds(Int.random(in: 0...60, using: &random))
            if Int.random(in: 0..<20, using: &random) == 0 {
                clock.change(perSecond: Int64.random(in: 5...60, using: &random))
            }
            if let turn = clock.takeDue(at: now, patience: .milliseconds(33)) {
                #expect(turn > last && turn <= now)
                last = turn
            }
            #expect(clock.next > last && clock.skipped >= skipped)
            skipped = clock.skipped
        }
    }
}

@Suite struct MediaClocks {
    @Test func `follow a sender whose clock runs fast or slow, over a wrap`() {
        for rate in [47_990.0, 48_000, 48_010] {
            var clock = MediaClock(rate: 48_000)
            var worst = 0.0
            for index in 0..<20_000 {
                let seconds = Double(index) * 0.02
                let now = MonotonicTime(nanoseconds: Int64(seconds * 1e9))
                let timestamp = clock.extend(
                    UInt32.max - 48_000 &+ UInt32(truncatingIfNeeded: Int(seconds * rate)))
                clock.note(timestamp, captured: now, arrival: now + .milliseconds(30))
                guard index > 100, let time = clock.time(of: timestamp) else { continue }
                worst = max(worst, abs(Double(time.nanoseconds(since: now))) / 1e6)
            }
            #expect(worst < 5)
        }
    }

    @Test func `take whatever came soonest for the measure until captures are known`() throws {
        var clock = MediaClock(rate: 90_000)
        for index in 0..<100 {
            let sent = MonotonicTime(nanoseconds: Int64(index) * 33_333_333)
            let timestamp = clock.extend(UInt32(index * 3_000))
            clock.note(timestamp, captured: nil, arrival: sent + .milliseconds(index % 7 == 0 ? 5 : 60))
        }
        let time = try #require(clock.time(of: 99 * 3_000))
        let delay = time.nanoseconds(since: MonotonicTime(nanoseconds: 99 * 33_333_333))
        #expect((4_000_000...12_000_000).contains(delay))
    }

    @Test func `survive anything`() {
        var random = SeededGenerator(seed: 3)
        var clock = MediaClock(rate: 48_000)
        for _ in 0..<5_000 {
            let timestamp = clock.extend(UInt32(truncatingIfNeeded: random.next()))
            let time = MonotonicTime(nanoseconds: Int64(bitPattern: random.next()))
            clock.note(timestamp, captured: random.next() % 2 == 0 ? time : nil, arrival: time)
            _ = clock.timestamp(at: time)
        }
    }
}

@Suite struct PlayoutDelays {
    @Test func `wait as long as nearly all takes, and no longer`() {
        var delay = PlayoutDelay()
        for index in 0..<500 {
            delay.noteAudio(Int64(index % 10) * 8_000_000)
            delay.advance()
        }
        // 72 ms, and 20 for the packet behind.
        #expect((.milliseconds(85)...(.milliseconds(115))).contains(delay.current))
        for _ in 0..<3_000 {
            delay.noteAudio(1_000_000)
            delay.advance()
        }
        #expect(delay.current <= .milliseconds(45))
    }

    @Test func `never wait for ever`() {
        var delay = PlayoutDelay()
        for _ in 0..<100 {
            delay.noteAudio(.max)
            delay.noteVideo(.max)
            delay.advance()
        }
        #expect(delay.current == PlayoutDelay.longest)
    }
}

extension TileFrame {
    /// Touching does not count.
    fileprivate func overlaps(_ other: TileFrame) -> Bool {
        x < other.x + other.width && other.x < x + width && y < other.y + other.height
            && other.y < y + height
    }
}
