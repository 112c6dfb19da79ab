import Base
import Testing
import TestSupport

@testable import Forwarding

@Suite struct PacketHistoryTests {
    /// A packet that can be told from every other one.
    private func packet(_ number: Int64, length: Int = 1_000) -> [UInt8] {
        (0..<length).map { UInt8(truncatingIfNeeded: Int(number) &* 31 &+ $0) }
    }

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    private func stored(_ number: Int64, in history: borrowing PacketHistory) -> [UInt8]? {
        history.range(of: number).map { Array(history.storage[$0]) }
    }

    @Test func `gives back what was stored`() {
        var history = PacketHistory(maximumCapacity: 1 << 20, maximumPackets: 512)
        for number in Int64(65_530)..<65_560 {
            let bytes = packet(number)
            history.store(bytes.span, 10..<900, sequenceNumber: number, at: time(number))
        }
        for number in Int64(65_530)..<65_560 {
            #expect(stored(number, in: history) == Array(packet(number)[10..<900]))
        }
        #expect(stored(65_529, in: history) == nil)
        #expect(stored(65_560, in: history) == nil)
    }

    @Test func `keeps a second of packets by growing, and no more than its limit`() {
        var history = PacketHistory(maximumCapacity: 1 << 18, maximumPackets: 1_024)
        // 100 packets a second of 1,000 bytes: a second fits into 2^18 bytes.
        for number in Int64(0)..<500 {
            let bytes = packet(number)
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(number * 10))
        }
        for number in Int64(401)..<500 { #expect(stored(number, in: history) == packet(number)) }
        #expect(history.storage.count <= 1 << 18)
        // A hundred times faster: the limit holds, the newest are there.
        for number in Int64(500)..<2_000 {
            let bytes = packet(number)
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(5_000 + number / 10))
        }
        #expect(history.storage.count == 1 << 18)
        for number in Int64(1_800)..<2_000 { #expect(stored(number, in: history) == packet(number)) }
        #expect(stored(1_000, in: history) == nil)
    }

    @Test func `stays small while the stream is quiet`() {
        var history = PacketHistory(maximumCapacity: 1 << 20, maximumPackets: 512)
        for number in Int64(0)..<1_000 {
            let bytes = packet(number, length: 80)
            history.store(bytes.span, 0..<80, sequenceNumber: number, at: time(number * 20))
        }
        #expect(history.storage.count == 16 * 1024)
        #expect(stored(999, in: history) == packet(999, length: 80))
    }

    @Test(arguments: UInt64(0)..<20) func `agrees with a dictionary, whatever comes in which order`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        var history = PacketHistory(
            maximumCapacity: 1 << 16, maximumPackets: 128, retention: .milliseconds(200))
        var newest: Int64 = 1_000
        for step in 0..<3_000 {
            newest += Int64.random(in: 0...3, using: &random)
            let number = newest - Int64.random(in: 0...20, using: &random)
            let bytes = packet(number, length: Int.random(in: 20...1_400, using: &random))
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(Int64(step)))
            #expect(stored(number, in: history) == bytes)
            let other = newest - Int64.random(in: 0...200, using: &random)
            if let found = stored(other, in: history) { #expect(found == packet(other, length: found.count)) }
        }
    }

    @Test func `refuses ranges outside the packet, and ancient packets`() {
        var history = PacketHistory(maximumCapacity: 1 << 16, maximumPackets: 64)
        let bytes = packet(1)
        history.store(bytes.span, 0..<1_001, sequenceNumber: 1, at: time(0))
        #expect(history.newest == nil)
        history.store(bytes.span, 0..<100, sequenceNumber: 1_000, at: time(0))
        history.store(bytes.span, 0..<100, sequenceNumber: 1, at: time(0))
        #expect(history.range(of: 1) == nil)
    }

    @Test func `keeps what it is told to, however old, within a limit of its own`() {
        var history = PacketHistory(maximumCapacity: 1 << 16, maximumPackets: 1_024)
        for number in Int64(0)..<50 {
            let bytes = packet(number)
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(number * 100))
        }
        #expect(stored(10, in: history) == nil)
        history.keep(from: 45, upTo: 1 << 18)
        var number: Int64 = 50
        while history.isKeeping, number < 1_000 {
            let bytes = packet(number)
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(number * 100))
            if history.isKeeping { #expect(stored(45, in: history) == packet(45)) }
            number += 1
        }
        #expect((250...262).contains(number - 45), "\(number)")
        #expect(history.storage.count == 1 << 18)
        history.stopKeeping(at: time(number * 100))
        // Ten packets a second.
        #expect(history.storage.count == 1 << 15)
        for number in (number - 9)..<number { #expect(stored(number, in: history) == packet(number)) }
    }

    @Test func `a history knows when it found the first gap`() {
        var history = PacketHistory(maximumCapacity: 1 << 16, maximumPackets: 128)
        for number in Int64(1)...20 where number != 7 && number != 8 && number != 15 {
            history.store(packet(number).span, 0..<100, sequenceNumber: number, at: time(number * 10))
        }
        #expect(history.firstGapFound(from: 1) == time(90))
        #expect(history.firstGapFound(from: 9) == time(160))
        #expect(history.firstGapFound(from: 16) == nil)
        #expect(history.count(from: 5) == 13)
        #expect(history.firstGapFound(from: -1_000_000) != nil)
    }

    @Test(arguments: UInt64(0)..<20) func `loses nothing that it keeps, in whatever order it comes`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        var history = PacketHistory(
            maximumCapacity: 1 << 15, maximumPackets: 512, retention: .milliseconds(50))
        var newest: Int64 = 0
        var known: [Int64: [UInt8]] = [:]
        var start: Int64?
        for step in Int64(0)..<4_000 {
            newest += 1
            let number = newest - (Int.random(in: 0..<10, using: &random) == 0 ? 3 : 0)
            let bytes = packet(number, length: Int.random(in: 20...1_200, using: &random))
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(step * 5))
            known[number] = bytes
            if step % 300 == 100 {
                start = number
                history.keep(from: number, upTo: 1 << 17)
            }
            if step % 300 == 290 { history.stopKeeping(at: time(step * 5)) }
            guard let start, history.isKeeping else { continue }
            for number in start...newest where known[number] != nil {
                #expect(stored(number, in: history) == known[number])
            }
        }
    }

    // MARK: Padding

    @Test func `the first padding of a packet is final`() throws {
        var history = PacketHistory(maximumCapacity: 1 << 20, maximumPackets: 512)
        for number in Int64(0)..<40 {
            let bytes = packet(number)
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(number))
        }
        let decided = [
            history.pad(20, by: 3), history.pad(20, by: 5), history.pad(21, by: 0), history.pad(21, by: 5),
            history.pad(22, by: PacketHistory.spare + 1), history.pad(23, by: PacketHistory.spare),
            history.pad(-1, by: 1),
        ]
        #expect(decided == [3, 3, 0, 0, 0, PacketHistory.spare, 0])
        // The ring grows meanwhile.
        for number in Int64(40)..<200 {
            let bytes = packet(number)
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(number))
        }
        for number in Int64(0)..<200 { #expect(stored(number, in: history) == packet(number)) }
        let (still, place) = (history.pad(20, by: 0), history.range(of: 20))
        #expect(still == 3)
        let range = try #require(place)
        #expect(Array(history.storage[range.upperBound..<(range.upperBound + 3)]) == [0, 0, 3])
    }

    @Test func `never lets padding overwrite a neighbour`() {
        var history = PacketHistory(maximumCapacity: 1 << 15, maximumPackets: 512)
        var random = SeededGenerator(seed: 3)
        for number in Int64(0)..<3_000 {
            let bytes = packet(number, length: Int.random(in: 1...1_200, using: &random))
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(number))
            _ = history.pad(number, by: Int.random(in: 0...PacketHistory.spare, using: &random))
            for earlier in max(number - 30, 0)...number {
                guard let found = stored(earlier, in: history) else { continue }
                #expect(found == packet(earlier, length: found.count))
            }
        }
    }

    /// Without a bound the first packet after a leap takes some 10^15 steps.
    @Test(.timeLimit(.minutes(10))) func `a leap in the numbers costs no more memory than its packets`() {
        var history = PacketHistory(maximumCapacity: 1 << 20, maximumPackets: 4_096)
        var number: Int64 = 1
        for step in Int64(0)..<1_500 {
            let bytes = packet(step)
            history.store(bytes.span, 0..<bytes.count, sequenceNumber: number, at: time(step / 2))
            number += 1
        }
        for step in Int64(0)..<50 {
            number += 1 << 50
            let bytes = packet(step, length: 100)
            history.store(bytes.span, 0..<100, sequenceNumber: number, at: time(1_000 + step * 10))
            if step == 25 { history.stopKeeping(at: time(1_000 + step * 10)) }
            #expect(stored(number, in: history) == bytes)
        }
        #expect(history.count(from: 1) >= 1)
    }

    /// Whoever walks through what is kept takes a step for each number.
    @Test(arguments: [1, 7, 900, 3_000] as [Int64]) func `keeps no more numbers than its index has places`(
        step: Int64
    ) {
        var history = PacketHistory(maximumCapacity: 1 << 20, maximumPackets: 4_096)
        var number: Int64 = 5
        for index in Int64(0)..<5_000 {
            let bytes = packet(number, length: 60)
            history.store(bytes.span, 0..<60, sequenceNumber: number, at: time(index))
            if index == 0 { history.keep(from: 5, upTo: 4 << 20) }
            #expect(history.isKeeping == (number - 5 < 4_096))
            if history.isKeeping { #expect(history.range(of: 5) != nil) }
            if history.isKeeping, index % 1_000 == 0 { #expect(history.count(from: 5) == Int(index) + 1) }
            number += step
        }
    }
}
