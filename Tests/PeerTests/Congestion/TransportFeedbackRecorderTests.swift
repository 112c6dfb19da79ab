import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite final class `A transport feedback recorder` {
    var recorder = TransportFeedbackRecorder(senderSSRC: 1, mediaSSRC: 2)

    func record(_ number: UInt16, at milliseconds: Int64) { recorder.record(number, at: at(milliseconds)) }

    func feedback(at milliseconds: Int64) -> [TransportFeedback] {
        recorder.feedbackDue(at: at(milliseconds))
    }

    /// What a publisher reads out of feedback: arrivals in ticks of 250 µs, and numbers called missing.
    struct Reading {
        var arrived: [UInt16: Int64] = [:]
        var missing: [UInt16] = []
    }

    /// Through the bytes on the wire and back.
    static func read(_ feedback: [TransportFeedback]) throws -> [Reading] {
        try feedback.map { packet in
            var bytes: [UInt8] = []
            packet.append(to: &bytes)
            let parsed = try RTCPPacket.parseCompound(bytes.span)
            guard case .transportFeedback(let read)? = parsed.first, parsed.count == 1 else {
                Issue.record("not one feedback packet: \(parsed)")
                return Reading()
            }
            #expect(bytes.count <= 1_160)
            #expect(read.senderSSRC == 1)
            #expect(read.mediaSSRC == 2)
            #expect(read.statusCount > 0)
            var reading = Reading()
            for arrival in read.arrivals { reading.arrived[arrival.sequenceNumber] = arrival.ticks }
            for step in 0..<read.statusCount {
                let number = read.baseSequenceNumber &+ UInt16(step)
                if reading.arrived[number] == nil { reading.missing.append(number) }
            }
            return reading
        }
    }

    func reading(at milliseconds: Int64) throws -> Reading {
        let readings = try Self.read(feedback(at: milliseconds))
        try #require(readings.count == 1)
        return readings[0]
    }

    @Test func `has nothing to say before a packet came`() {
        #expect(recorder.deadline == nil)
        #expect(feedback(at: 1_000) == [])
    }

    @Test func `reports a tenth of a second after the first unreported arrival`() throws {
        record(10, at: 5)
        record(11, at: 30)
        #expect(recorder.deadline == at(105))
        #expect(feedback(at: 104) == [])
        let reading = try reading(at: 105)
        #expect(reading.arrived == [10: 20, 11: 120])
        #expect(reading.missing == [])
        #expect(recorder.deadline == nil)
        #expect(feedback(at: 1_000) == [])
    }

    @Test func `reports the gap before an arrival, also across reports`() throws {
        record(10, at: 0)
        _ = try reading(at: 100)
        record(13, at: 110)
        record(12, at: 112)
        record(15, at: 113)
        let reading = try reading(at: 210)
        #expect(reading.missing == [11, 14])
        #expect(Set(reading.arrived.keys) == [12, 13, 15])
    }

    @Test func `reports a late packet together with all after it`() throws {
        record(10, at: 0)
        record(12, at: 2)
        record(13, at: 3)
        _ = try reading(at: 100)
        record(11, at: 101)
        record(14, at: 102)
        let reading = try reading(at: 201)
        #expect(reading.missing == [])
        #expect(reading.arrived == [11: 404, 12: 8, 13: 12, 14: 408])
    }

    @Test func `keeps the first arrival of a packet that comes twice`() throws {
        record(10, at: 0)
        record(10, at: 50)
        #expect(try reading(at: 100).arrived == [10: 0])
        record(10, at: 150)
        #expect(recorder.deadline == nil)
        #expect(recorder.duplicateCount == 2)
    }

    @Test func `goes on over the wrap of the numbers`() throws {
        record(65_534, at: 0)
        record(1, at: 1)
        let reading = try reading(at: 100)
        #expect(Set(reading.arrived.keys) == [65_534, 1])
        #expect(reading.missing == [65_535, 0])
    }

    @Test func `reports twice as often when much comes in`() {
        for number in UInt16(0)..<100 { record(number, at: Int64(number)) }
        #expect(!feedback(at: 100).isEmpty)
        for number in UInt16(100)..<200 { record(number, at: Int64(number)) }
        #expect(!feedback(at: 200).isEmpty)
        record(200, at: 200)
        #expect(recorder.deadline == at(250))
        #expect(!feedback(at: 250).isEmpty)
        record(201, at: 251)
        #expect(recorder.deadline == at(351))
    }

    @Test func `reports at once before arrivals fall out of memory`() {
        for number in UInt16(0)..<511 { record(number, at: 1) }
        #expect(recorder.deadline == at(101))
        record(511, at: 2)
        #expect(recorder.deadline == at(2))
    }

    @Test func `counts what it had to drop, and stays consistent`() throws {
        for number in UInt16(0)..<3_000 { record(number, at: 1) }
        #expect(recorder.droppedCount == 3_000 - 1_024)
        let readings = try Self.read(feedback(at: 2))
        #expect(readings.reduce(0) { $0 + $1.arrived.count } == 1_024)
        #expect(readings.allSatisfy { $0.missing.isEmpty })
    }

    @Test func `a long gap in the numbers counts as a jump`() throws {
        record(10, at: 0)
        _ = try reading(at: 100)
        record(20_000, at: 200)
        let reading = try reading(at: 300)
        #expect(Array(reading.arrived.keys) == [20_000])
        #expect(reading.missing.isEmpty)
    }

    @Test func `follows a counter that was reset`() throws {
        record(30_000, at: 0)
        _ = try reading(at: 100)
        for number in UInt16(0)..<40 { record(number, at: 200 + Int64(number)) }
        let reading = try reading(at: 340)
        #expect(reading.arrived.keys.sorted() == Array(31..<40))
    }

    @Test func `numbers its feedback`() throws {
        for round in Int64(0)..<300 {
            record(UInt16(round), at: round * 200)
            let packets = feedback(at: round * 200 + 100)
            #expect(packets.map(\.feedbackCount) == [UInt8(truncatingIfNeeded: round)])
        }
    }

    @Test(arguments: 0..<20) func `tells a publisher what arrived and when`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let first = UInt16.random(in: 0...UInt16.max, using: &random)
        let lossPercent = Int(seed % 25)
        var arrivals: [(time: Int64, number: Int)] = []
        var time: Int64 = 40_000_000
        for number in 0..<2_000 {
            time += Int64.random(in: 0...4_000_000, using: &random)
            guard Int.random(in: 0..<100, using: &random) >= lossPercent else { continue }
            let isSlow = Int.random(in: 0..<20, using: &random) == 0
            for _ in 0..<(Int.random(in: 0..<50, using: &random) == 0 ? 2 : 1) {
                let delay = Int64.random(in: 0...(isSlow ? 150_000_000 : 1_000_000), using: &random)
                arrivals.append((time + delay, number))
            }
        }
        arrivals.sort { ($0.time, $0.number) < ($1.time, $1.number) }

        // The truth, and what the publisher learns: the last word on each number counts.
        var truth: [Int: Int64] = [:]
        var learned: [UInt16: Int64] = [:]
        var feedbackTimes: [Int64] = []
        func take(_ packets: [TransportFeedback], at now: Int64) throws {
            guard !packets.isEmpty else { return }
            feedbackTimes.append(now)
            for reading in try Self.read(packets) {
                for (number, ticks) in reading.arrived { learned[number] = ticks }
                for number in reading.missing {
                    #expect(learned[number] == nil, "\(number) arrived, and was then called missing")
                }
            }
        }
        for (time, number) in arrivals {
            while let deadline = recorder.deadline, deadline.nanoseconds <= time {
                try take(recorder.feedbackDue(at: deadline), at: deadline.nanoseconds)
            }
            recorder.record(first &+ UInt16(number), at: MonotonicTime(nanoseconds: time))
            truth[number] = min(truth[number] ?? .max, time)
        }
        if let deadline = recorder.deadline { try take(recorder.feedbackDue(at: deadline), at: 0) }

        #expect(recorder.droppedCount == 0)
        #expect(learned.count == truth.count)
        for (number, time) in truth {
            #expect(learned[first &+ UInt16(number)] == time / 250_000)
        }
        for (earlier, later) in zip(feedbackTimes, feedbackTimes.dropFirst().dropLast()) {
            #expect(later - earlier >= 50_000_000)
        }
    }

    @Test(arguments: 0..<20) func `survives garbage`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<1_000 {
            let now = MonotonicTime(nanoseconds: Int64(bitPattern: random.next()))
            recorder.record(UInt16(truncatingIfNeeded: random.next()), at: now)
            for packet in recorder.feedbackDue(at: now) {
                var bytes: [UInt8] = []
                packet.append(to: &bytes)
                #expect(bytes.count <= 1_160)
            }
        }
    }
}
