import Base
import Peer
import TestSupport
import Testing
import Wire

/// A sender, a bad network and a receive stream, in virtual time and from a seed.
private struct RepairSimulation {
    /// Milliseconds; one way.
    static let delay: Int64 = 30
    static let rtt = Duration.milliseconds(60)
    static let packets: Int64 = 3_000

    enum Event {
        case original(Int64)
        case retransmission(Int64)
        case requests([UInt16])
    }

    var stream = ReceiveStream(ssrc: 1, clockRate: 90_000, repair: .packetsAndKeyFrames)
    var random: SeededGenerator
    /// Sequence number of the sender's first packet.
    let first: Int64
    let lossPercent: Int
    let answers: Bool
    /// By time in nanoseconds, then by order of making.
    var events: [(time: Int64, order: Int, event: Event)] = []
    var order = 0

    /// What the network and the sender saw, kept as plainly as possible.
    var arrived: Set<Int64> = []
    var originals: Set<Int64> = []
    var askedAt: [Int64: [Int64]] = [:]
    var newest: Int64 = .min
    var oldest: Int64 = .max
    /// Missing at some time while something newer was there.
    var noticed: Set<Int64> = []
    /// No longer wanted, because of a key frame.
    var excused: Set<Int64> = []
    var wantedKeyFrames = 0
    var failures: [String] = []

    init(seed: UInt64, lossPercent: Int, answers: Bool = true) {
        random = SeededGenerator(seed: seed)
        first = Int64.random(in: 60_000...65_535, using: &random)
        self.lossPercent = lossPercent
        self.answers = answers
    }

    mutating func post(_ event: Event, in nanoseconds: Int64, from now: Int64) {
        order += 1
        let entry = (time: now + nanoseconds, order: order, event: event)
        let place = events.lastIndex { ($0.time, $0.order) > (entry.time, entry.order) }
        // Latest first, so that the next event is the last one of the array.
        events.insert(entry, at: place.map { $0 + 1 } ?? 0)
    }

    /// Sends something over the network: it may be lost, late or doubled.
    mutating func send(_ event: Event, from now: Int64) {
        for _ in 0..<(Int.random(in: 0..<100, using: &random) == 0 ? 2 : 1) {
            guard Int.random(in: 0..<100, using: &random) >= lossPercent else { continue }
            let isSlow = Int.random(in: 0..<50, using: &random) == 0
            let jitter = Int64.random(in: 0...(isSlow ? 20_000_000 : 500_000), using: &random)
            post(event, in: Self.delay * 1_000_000 + jitter, from: now)
        }
    }

    /// Every 500th packet starts a key frame.
    static func startsKeyFrame(_ number: Int64) -> Bool { number % 500 == 0 }

    mutating func run() {
        var next: Int64 = 0
        var sendTime: Int64 = 0
        while true {
            let arrival = events.last?.time ?? .max
            let wake = stream.deadline?.nanoseconds ?? .max
            let sending = next < Self.packets ? sendTime : .max
            let now = min(arrival, wake, sending)
            guard now < .max else { break }
            if sending == now {
                send(.original(first + next), from: now)
                next += 1
                sendTime += Int64.random(in: 500_000...6_000_000, using: &random)
            } else if arrival == now, let entry = events.popLast() {
                handle(entry.event, at: now)
            }
            ask(at: now)
        }
    }

    private mutating func handle(_ event: Event, at now: Int64) {
        switch event {
        case .original(let number): arrive(number, isRetransmission: false, at: now)
        case .retransmission(let number): arrive(number, isRetransmission: true, at: now)
        case .requests(let numbers):
            guard answers else { return }
            for number in numbers { send(.retransmission(full(number)), from: now) }
        }
    }

    /// What a number on the wire means to the sender.
    private func full(_ number: UInt16) -> Int64 {
        let last = first + Self.packets
        return last - Int64(UInt16(truncatingIfNeeded: last) &- number)
    }

    private mutating func arrive(_ number: Int64, isRetransmission: Bool, at now: Int64) {
        let startsKeyFrame = Self.startsKeyFrame(number)
        let wasAsked = askedAt[number] != nil
        let outcome = stream.receive(
            sequenceNumber: UInt16(truncatingIfNeeded: number), timestamp: UInt32(truncatingIfNeeded: number),
            size: 1_000, origin: isRetransmission ? .retransmission : .original,
            startsKeyFrame: startsKeyFrame,
            at: MonotonicTime(nanoseconds: now))
        let expected: ReceiveStream.Arrival =
            if arrived.contains(number) {
                .duplicate(number)
            } else if isRetransmission || wasAsked && !excused.contains(number) && !given(up: number, at: now)
            {
                .repaired(number)
            } else {
                .new(number)
            }
        if outcome != expected { failures.append("\(number): \(outcome) instead of \(expected)") }
        arrived.insert(number)
        if case .new = outcome { originals.insert(number) }
        if newest != .min, number > newest {
            for missing in (newest + 1)..<max(number, newest + 1) { noticed.insert(missing) }
        }
        newest = max(newest, number)
        oldest = min(oldest, number)
        if startsKeyFrame {
            for missing in noticed where missing < number && !arrived.contains(missing) {
                excused.insert(missing)
            }
        }
    }

    /// Whether the generator stopped waiting for a packet; a second is its limit, ten requests take longer here.
    private func given(up number: Int64, at now: Int64) -> Bool {
        guard let first = askedAt[number]?.first else { return false }
        return now >= first + 1_000_000_000
    }

    private mutating func ask(at now: Int64) {
        var numbers: [UInt16] = []
        stream.nacksDue(at: MonotonicTime(nanoseconds: now), rtt: Self.rtt, into: &numbers)
        if stream.takeKeyFrameDemand() { wantedKeyFrames += 1 }
        guard !numbers.isEmpty else { return }
        for number in numbers {
            let number = full(number)
            if arrived.contains(number) { failures.append("\(number) asked for after it came") }
            askedAt[number, default: []].append(now)
        }
        send(.requests(numbers), from: now)
    }
}

@Suite struct `A receive stream on a bad network` {
    private static func check(_ simulation: RepairSimulation) {
        #expect(simulation.failures == [])
        for (number, times) in simulation.askedAt {
            #expect(times.count <= 10, "\(number)")
            #expect((times.last ?? 0) - (times.first ?? 0) < 1_000_000_000)
            for (earlier, later) in zip(times, times.dropFirst()) {
                #expect(later - earlier >= 60_000_000, "\(number) asked for again too soon")
            }
        }
        let unasked = simulation.noticed
            .subtracting(simulation.arrived).subtracting(simulation.excused)
            .filter { simulation.askedAt[$0] == nil }
        #expect(unasked.isEmpty, "lost and never asked for: \(unasked.sorted())")
    }

    @Test(arguments: 0..<40) func `asks for each lost packet, and no more often than allowed`(seed: UInt64) {
        var simulation = RepairSimulation(seed: seed, lossPercent: Int(seed % 20))
        simulation.run()
        Self.check(simulation)
        // With so many tries a packet is hardly ever left missing, unless a key frame made it useless.
        let missing = simulation.noticed.subtracting(simulation.arrived).subtracting(simulation.excused)
        #expect(missing.count <= 3)
    }

    @Test(arguments: 0..<10) func `gives up a sender that never answers`(seed: UInt64) {
        var simulation = RepairSimulation(seed: seed, lossPercent: 5, answers: false)
        simulation.run()
        Self.check(simulation)
        #expect(simulation.stream.deadline == nil)
        #expect(simulation.stream.abandonedCount > 0)
        #expect(simulation.wantedKeyFrames > 0)
    }

    @Test(arguments: 0..<40) func `reports what an observer of the network counts`(seed: UInt64) throws {
        var simulation = RepairSimulation(seed: seed, lossPercent: Int(seed % 30))
        simulation.run()
        let expected = simulation.newest - simulation.oldest + 1
        let lost = expected - Int64(simulation.arrived.count)
        let report = simulation.stream.reportBlock(at: at(0))
        let block = try #require(report)
        #expect(simulation.stream.expected == expected)
        #expect(Int64(block.cumulativeLost) == lost)
        #expect(block.fractionLost == UInt8(clamping: lost * 256 / expected))
        #expect(block.highestSequenceNumber == UInt32(truncatingIfNeeded: simulation.newest))
        let loss = simulation.stream.takeLoss()
        #expect(loss.expected == Int(expected))
        #expect(loss.lost == Int(expected) - simulation.originals.count)
    }
}
