import Base
import TestSupport
import Testing

@testable import Transcoder

private func at(_ milliseconds: Int) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

private func packet(
    _ number: Int64, at milliseconds: Int = 0, epoch: UInt32 = 0, timestamp: UInt32? = nil
) -> InputPacket {
    InputPacket(
        sequenceNumber: number, timestamp: timestamp ?? UInt32(truncatingIfNeeded: number &* 960),
        marker: false, codec: .opus, isEntryPoint: true, epoch: epoch,
        arrival: at(milliseconds), payload: [0xFC, UInt8(truncatingIfNeeded: number)])
}

@Suite struct `The order of an input's packets` {
    private var order = PacketOrder()

    /// The numbers of what is next once a packet has come.
    private mutating func insert(_ number: Int64, at milliseconds: Int = 0, epoch: UInt32 = 0) -> [Int64] {
        order.insert(packet(number, at: milliseconds, epoch: epoch), at: at(milliseconds))
            .map(\.sequenceNumber)
    }

    private mutating func advance(to milliseconds: Int) -> [Int64] {
        order.advance(to: at(milliseconds)).map(\.sequenceNumber)
    }

    @Test mutating func `is that of their numbers, whatever comes first`() {
        let found = [insert(7), insert(9), insert(10), insert(8), insert(11)]
        #expect(found == [[7], [], [], [8, 9, 10], [11]])
    }

    @Test mutating func `has each of them once, and none that is behind`() {
        let found = [insert(7), insert(7), insert(6), insert(8), insert(7), insert(9)]
        #expect(found == [[7], [], [], [8], [], [9]])
    }

    @Test mutating func `waits for a missing one for as long as another has waited for it`() {
        let first = [insert(1), insert(3, at: 20), insert(4, at: 40)]
        #expect(first == [[1], [], []])
        let (early, late) = (advance(to: 139), advance(to: 140))
        #expect(early.isEmpty && late == [3, 4])
        let missed = insert(2, at: 141)
        #expect(missed.isEmpty)
    }

    @Test mutating func `leaves a large gap at once where too much waits`() {
        _ = insert(1)
        for number in 0..<256 as Range<Int64> {
            let early = insert(1_000 + number, at: 1)
            #expect(early.isEmpty)
        }
        let all = insert(1_256, at: 1)
        #expect(all == Array(1_000...1_256))
    }

    @Test mutating func `begins anew with another source, whose numbers may be lower`() {
        _ = insert(60_000)
        _ = insert(60_002)
        let other = [insert(5, epoch: 1), insert(6, epoch: 1)]
        #expect(other == [[5], [6]])
    }

    @Test(arguments: ChosenSeed.or(0...19))
    func `goes forward, and has everything that comes in time`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var order = PacketOrder()
        var arrivals: [(at: Int, number: Int64)] = []
        var lost: Set<Int64> = []
        for number in 0..<400 as Range<Int64> {
            if Int.random(in: 0..<20, using: &random) == 0 {
                lost.insert(number)
                continue
            }
            arrivals.append((Int(number) * 20 + Int.random(in: 0...100, using: &random), number))
        }
        arrivals.sort { ($0.at, $0.number) < ($1.at, $1.number) }
        var found: [Int64] = []
        for arrival in arrivals {
            let next = order.insert(packet(arrival.number, at: arrival.at), at: at(arrival.at))
            found += next.map(\.sequenceNumber)
        }
        found += order.advance(to: at(60_000)).map(\.sequenceNumber)
        // The first that came is where it begins, and what was sent before it is behind.
        let first = arrivals.first?.number ?? 0
        let expected = (first..<400).filter { !lost.contains($0) }
        #expect(found == expected)
    }
}

@Suite struct `Time stamps of 32 bits` {
    /// Ticks of a source over several wraps, a little out of order.
    private func walk(_ random: inout SeededGenerator) -> [Int64] {
        var highest = Int64(UInt32.random(in: 0...UInt32.max, using: &random))
        return (0..<500).map { index in
            if index > 0, index % 4 != 3 { highest += Int64.random(in: 1...1_500_000_000, using: &random) }
            return index % 4 == 3 ? highest - Int64.random(in: 1...2_000_000_000, using: &random) : highest
        }
    }

    @Test(arguments: ChosenSeed.or(0...9)) func `are counted on in a mix's clock`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let ticks = walk(&random)
        var clock = MediaClock(rate: 90_000)
        let found = ticks.map { clock.extend(UInt32(truncatingIfNeeded: $0)) }
        #expect(zip(found, ticks).allSatisfy { $0 - found[0] == $1 - ticks[0] })
    }

    @Test(arguments: ChosenSeed.or(0...9)) func `are counted on in a recording's clock`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let ticks = walk(&random)
        var clock = InputClock(rate: 90_000)
        for tick in ticks {
            let timestamp = UInt32(truncatingIfNeeded: tick)
            clock.note(timestamp, epoch: 3, arrival: .zero, captured: nil)
            #expect(clock.ticks(of: timestamp) == tick - ticks[0])
        }
    }

    @Test func `say the same time in both directions, for centuries`() throws {
        for rate in [48_000, 90_000] as [Int64] {
            var clock = MediaClock(rate: rate)
            let start = clock.extend(1_000)
            clock.note(start, captured: .zero, arrival: .zero)
            for seconds in [0, 1, 47_721, 1 << 31] as [Int64] {
                let time = try #require(clock.time(of: start + seconds * rate))
                #expect(time.nanoseconds == seconds * 1_000_000_000)
                let ticks = try #require(clock.timestamp(at: time))
                #expect(abs(ticks - start - seconds * rate) <= 1)
            }
        }
    }
}

@Suite struct `A track of a recording` {
    private var track = RecordingTrack(rate: 48_000)

    private mutating func append(_ packet: InputPacket) {
        track.note(packet)
        track.append(packet)
    }

    private func times() -> [MonotonicTime] {
        var rest = track
        var times: [MonotonicTime] = []
        while let sample = rest.first {
            times.append(rest.time(of: sample))
            rest.removeFirst()
        }
        return times
    }

    @Test mutating func `keeps the times of what waits when another source takes its place`() {
        append(packet(1, at: 1_000, timestamp: 4_000_000_000))
        append(packet(2, at: 1_020, timestamp: 4_000_000_960))
        let before = times()
        append(packet(3, at: 1_500, epoch: 1, timestamp: 7))
        #expect(times() == before + [at(1_500)])
        track.change()
        append(packet(4, at: 2_500, epoch: 1, timestamp: 3_000_000_000))
        #expect(times().last == at(2_500))
        #expect(Array(times().prefix(2)) == before)
    }

    /// A minute could otherwise become hours.
    @Test mutating func `has nothing more than ten seconds from its arrival`() {
        var wrong = packet(1, at: 60_000, timestamp: 0)
        wrong.captured = .zero
        append(wrong)
        var far = packet(2, at: 60_020, timestamp: 1 << 30)
        far.captured = MonotonicTime(nanoseconds: .max)
        append(far)
        for (time, arrival) in zip(times(), [60_000, 60_020]) {
            #expect(abs(time.nanoseconds(since: at(arrival))) <= 10_000_000_000)
        }
    }

    @Test mutating func `leaves the oldest out where nobody takes them`() {
        for number in 0..<2_100 as Range<Int64> { append(packet(number, at: Int(number) * 20)) }
        #expect(track.first?.arrival == at(2_000))
        var count = 0
        while !track.isEmpty {
            track.removeFirst()
            count += 1
        }
        #expect(count == 2_000)
    }

    @Test mutating func `has no packet of sound that says no length`() {
        for payload: [UInt8] in [[], [0x03], [0x03, 0x00], [0x03, 0x3F]] {
            var broken = packet(1)
            broken.payload = payload
            append(broken)
        }
        #expect(track.isEmpty)
        append(packet(2))
        #expect(track.first?.duration == .milliseconds(20))
    }
}
