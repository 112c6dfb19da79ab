import Base
import Ingest
import TestSupport
import Testing

@Suite struct `A time line of media` {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// Sound and pictures that are up to 200 ms late, with time stamps that turn over.
    @Test(arguments: ChosenSeed.or(1...20))
    func `keeps distances, and has nothing captured before it was or after it came`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var timeline = MediaTimeline()
        let base = UInt32.max - UInt32.random(in: 0...60_000, using: &random)
        var (first, clock): (Int?, Int) = (nil, 0)
        for _ in 0..<2_000 {
            clock += Int.random(in: 0...60, using: &random)
            // The one kind of media may be behind the other.
            let taken = clock + Int.random(in: 0...300, using: &random)
            let now = start + .milliseconds(taken + Int.random(in: 0...200, using: &random))
            let place = timeline.place(base &+ UInt32(taken), at: now)
            first = first ?? taken
            #expect(place.media == Int64(taken - (first ?? 0)))
            #expect(place.captured >= start + .milliseconds(taken) && place.captured <= now)
        }
    }

    @Test func `takes a pause for a pause, and a longer one for a clock that was reset`() {
        for seconds in [1, 9, 10, 11, 3_600] {
            var timeline = MediaTimeline()
            _ = timeline.place(700, at: start)
            let now = start + .seconds(seconds)
            // The encoder's clock went on.
            let place = timeline.place(700 + UInt32(seconds * 1_000), at: now)
            #expect(place.media == Int64(seconds) * 1_000 && place.captured == now)
        }
    }

    @Test func `is with an encoder again whose clock stood still`() throws {
        var timeline = MediaTimeline()
        _ = timeline.place(0, at: start)
        var last: MediaTimeline.Place?
        var now = start + .seconds(15)
        for index in 1...400 {
            now = start + .seconds(15) + .milliseconds(index * 33)
            last = timeline.place(UInt32(index * 33), at: now)
        }
        let place = try #require(last)
        #expect(place.media == 13_200)
        #expect(last?.captured == now)
    }

    /// An encoder that is started again may keep its connection; what viewers have seen must not come a second time.
    @Test(arguments: [2, 5, 9, 11]) func `goes on with an encoder that begins anew soon`(seconds: Int) {
        var timeline = MediaTimeline()
        var reached: [MediaTimeline.Kind: Int64] = [:]
        for run in 0..<3 {
            for step in 0..<(seconds * 50) {
                let time = UInt32(step * 20)
                let now = start + .milliseconds(run * seconds * 1_000 + step * 20)
                // Sound is a quarter of a second behind, also while the pictures have begun anew already.
                for (kind, lag) in [(MediaTimeline.Kind.picture, 0), (.sound, 250)] {
                    let isFormer = step * 20 < lag
                    guard !isFormer || run > 0 else { continue }
                    let taken = isFormer ? UInt32(seconds * 1_000) + time - UInt32(lag) : time - UInt32(lag)
                    let place = timeline.place(taken, of: kind, at: now)
                    let expected = Int64(run * seconds * 1_000 + step * 20 - lag)
                    #expect(place.media == expected && place.captured <= now)
                    let before = reached[kind] ?? -1
                    #expect(place.media > before)
                    reached[kind] = place.media
                }
            }
        }
    }

    @Test func `leaves sound where it is that comes long after its pictures, also after silence`() {
        var timeline = MediaTimeline()
        for second in 0..<40 {
            let now = start + .seconds(second)
            let picture = timeline.place(UInt32(second * 1_000), of: .picture, at: now)
            #expect(picture.media == Int64(second * 1_000))
            guard second >= 3, !(10..<25).contains(second) else { continue }
            let sound = timeline.place(UInt32((second - 3) * 1_000), of: .sound, at: now)
            #expect(sound.media == Int64((second - 3) * 1_000))
        }
    }

    @Test func `never traps`() {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<50 {
            var timeline = MediaTimeline()
            var now = start
            for _ in 0..<200 {
                let gap: ClosedRange<Int64> = Bool.random(using: &random) ? 0...1 << 30 : 0...1 << 56
                now = now.advanced(byNanoseconds: .random(in: gap, using: &random))
                let place = timeline.place(.random(in: 0 ... .max, using: &random), at: now)
                #expect(place.captured <= now && place.media.magnitude <= 1 << 40)
            }
        }
    }
}
