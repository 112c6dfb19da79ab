import Base
import Testing

@testable import Transcoder

@Suite struct `A composition under load` {
    private var governor = OverloadGovernor()
    private var now = MonotonicTime(nanoseconds: 1)

    init() {
        // The first picture begins the first second.
        _ = governor.note(.zero, missed: 0, at: now)
    }

    /// One second of twenty pictures.
    /// - Parameters:
    ///   - milliseconds: what each of them costs.
    ///   - missed: pictures that were left out in this second.
    /// - Returns: how often the level changed.
    private mutating func second(_ milliseconds: Int, missed: Int = 0) -> Int {
        var changes = 0
        for turn in 0..<20 {
            now = now + .milliseconds(50)
            let hasChanged = governor.note(
                .milliseconds(milliseconds), missed: turn == 7 ? missed : 0, at: now)
            changes += hasChanged ? 1 : 0
        }
        return changes
    }

    @Test mutating func `gives way above 85 percent, by one step a second, to the last one`() {
        // 84 and 86 percent.
        let calm = second(42)
        let steps = (0..<8).map { _ in second(43) }
        #expect(calm == 0 && steps == [1, 1, 1, 1, 1, 1, 0, 0])
        #expect(governor.index == OverloadGovernor.levels.count - 1)
    }

    @Test mutating func `comes back by one step after eight seconds with room to spare`() {
        _ = second(43)
        _ = second(43)
        // 44 percent.
        let first = (0..<9).map { _ in second(22) }
        let next = (0..<9).map { _ in second(22) }
        #expect(first == [0, 0, 0, 0, 0, 0, 0, 0, 1] && next == first)
        let rest = (0..<20).map { _ in second(22) }
        #expect(governor.index == 0 && rest.allSatisfy { $0 == 0 })
    }

    @Test mutating func `waits anew after a second without room`() {
        _ = second(43)
        let before = (0..<8).map { _ in second(22) }
        // 46 percent: neither too much nor little.
        let between = second(23)
        let after = (0..<9).map { _ in second(22) }
        #expect(before.allSatisfy { $0 == 0 } && between == 0)
        #expect(after == [0, 0, 0, 0, 0, 0, 0, 0, 1])
    }

    /// Others use the processor then, who would not use it less.
    @Test mutating func `becomes no smaller where it costs little and misses pictures`() {
        let few = second(3, missed: 5)
        let many = (0..<6).map { _ in second(3, missed: 6) }
        #expect(few == 0 && many == [1, 1, 0, 0, 0, 0])
        #expect(governor.level.size == 100 && governor.level.rate == 50)
        let afterwards = (0..<9).map { _ in second(3) }
        #expect(afterwards == [0, 0, 0, 0, 0, 0, 0, 0, 1])
    }

    @Test mutating func `becomes smaller where it misses pictures and costs more than a little`() {
        let steps = (0..<4).map { _ in second(23, missed: 6) }
        #expect(steps == [1, 1, 1, 1])
        #expect(governor.level.size < 100)
    }
}

@Suite struct `The delay of a speaker` {
    private var delay = PlayoutDelay()

    @Test mutating func `is that of what takes longer, at once`() {
        delay.noteAudio(1_000_000)
        delay.noteVideo(150_000_000)
        delay.advance()
        #expect(delay.current == .milliseconds(155))
    }

    @Test mutating func `is longer for sound by what a block takes of the next packet`() {
        delay.noteAudio(60_000_000)
        delay.advance()
        #expect(delay.current == .milliseconds(87))
    }

    @Test mutating func `does not grow for pictures that are too late in any case`() {
        delay.noteVideo(PlayoutDelay.longest.wholeNanoseconds)
        delay.advance()
        #expect(delay.current == PlayoutDelay.shortest)
        delay.noteVideo(PlayoutDelay.longest.wholeNanoseconds - 1)
        delay.advance()
        #expect(delay.current == PlayoutDelay.longest)
    }

    @Test mutating func `becomes shorter by a hundredth of the time that passes`() {
        delay.noteVideo(150_000_000)
        delay.advance()
        for _ in 0..<1_500 { delay.noteVideo(1_000_000) }
        delay.advance()
        #expect(delay.current == .microseconds(154_800))
        for _ in 0..<99 { delay.advance() }
        #expect(delay.current == .milliseconds(135))
        for _ in 0..<2_000 { delay.advance() }
        #expect(delay.current == .milliseconds(40))
    }

    /// A clock that is set may make it look as if something came before it was captured.
    @Test mutating func `is no less than the shortest for what is early`() {
        for _ in 0..<10 {
            delay.noteAudio(-5_000_000_000)
            delay.noteVideo(.min)
            delay.advance()
        }
        #expect(delay.current == PlayoutDelay.shortest)
    }

    @Test(arguments: [(50, 30), (20, 205)])
    mutating func `leaves out the latest three in a hundred`(oneIn: Int, milliseconds: Int) {
        for number in 1...1_000 {
            delay.noteVideo(number.isMultiple(of: oneIn) ? 200_000_000 : 1_000_000)
        }
        delay.advance()
        #expect(delay.current == .milliseconds(milliseconds))
    }
}

@Suite struct `The clock of a speaker` {
    private var clock = MediaClock(rate: 48_000)

    private func at(_ nanoseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: nanoseconds) }

    @Test mutating func `tells nothing before the first packet`() {
        #expect(clock.time(of: 0) == nil && clock.timestamp(at: .zero) == nil)
        clock.note(0, captured: nil, arrival: at(100_000_000))
        #expect(clock.time(of: 48_000) == at(1_100_000_000))
        #expect(clock.timestamp(at: at(600_000_000)) == 24_000)
    }

    @Test mutating func `goes by captures alone once these are known`() {
        clock.note(0, captured: nil, arrival: at(100_000_000))
        clock.note(48_000, captured: at(1_000_000_000), arrival: at(1_100_000_000))
        #expect(clock.time(of: 0) == at(0))
        // Sooner than any packet before.
        clock.note(96_000, captured: nil, arrival: at(1_900_000_000))
        #expect(clock.time(of: 0) == at(0))
    }

    @Test mutating func `follows small differences bit by bit, and large ones at once`() {
        clock.note(0, captured: at(0), arrival: at(0))
        clock.note(48_000, captured: at(1_100_000_000), arrival: at(0))
        #expect(clock.time(of: 0) == at(3_125_000))
        clock.note(96_000, captured: at(2_153_125_000), arrival: at(0))
        #expect(clock.time(of: 0) == at(7_812_500))
        clock.note(144_000, captured: at(3_157_812_501), arrival: at(0))
        #expect(clock.time(of: 0) == at(157_812_501))
        clock.note(192_000, captured: at(4_000_000_000), arrival: at(0))
        #expect(clock.time(of: 0) == at(0))
    }

    @Test mutating func `begins anew with a packet that is more than two seconds late`() {
        clock.note(0, captured: nil, arrival: at(0))
        clock.note(48_000, captured: nil, arrival: at(3_000_000_000))
        #expect(clock.time(of: 0) == at(1_953_125))
        clock.note(96_000, captured: nil, arrival: at(4_001_953_126))
        #expect(clock.time(of: 0) == at(2_001_953_126))
    }
}

@Suite struct `Voices in a mix` {
    @Test func `count for what they have of a block, and no more`() {
        var mixer = Mixer()
        let blocks: [[Float]] = [[0.25, 0.25], [0.5, 0.5, 0.5, 0.5], [0.125, 0, 0, 0, 0.75, 0.75]]
        let mixed = mixer.mix(blocks, count: 4)
        #expect(mixed == [0.875, 0.75, 0.5, 0.5])
    }

    @Test func `are as loud as before a quarter of a second after something was twice too loud`() {
        var mixer = Mixer()
        func block(_ value: Float) -> [Float] { [Float](repeating: value, count: 1_920) }
        let loud = mixer.mix([block(Mixer.ceiling), block(Mixer.ceiling)], count: 1_920)
        // Within 5 ms they fit without being cut off.
        #expect(abs((loud.last ?? 0) - Mixer.ceiling) < 1e-4)
        let after = (0..<7).map { _ in mixer.mix([block(0.125)], count: 1_920).last ?? 0 }
        #expect(zip(after, after.dropFirst()).allSatisfy { $0 < $1 })
        #expect(after[5] < 0.124 && abs(after[6] - 0.125) < 1e-4)
    }
}

@Suite struct `Tiles of more than nine` {
    @Test func `put nobody first who is not shown`() {
        var assignment = TileAssignment()
        let all = (0..<12).map { "p\($0)" }
        assignment.update(all, first: "p11")
        #expect(assignment.places == Array(all.prefix(9)))
        assignment.update(all, first: "p8")
        #expect(assignment.places == ["p8", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p0"])
    }

    @Test func `take the places of those who left, and close up where there are fewer again`() {
        var assignment = TileAssignment()
        let all = (0..<12).map { "p\($0)" }
        assignment.update(all)
        // Two leave, and the seven others stay where they are.
        assignment.update(all.filter { $0 != "p2" && $0 != "p5" })
        #expect(assignment.places == ["p0", "p1", "p9", "p3", "p4", "p10", "p6", "p7", "p8"])
        assignment.update(["p10", "p0", "p9"])
        #expect(assignment.places == ["p0", "p9", "p10"])
    }
}
