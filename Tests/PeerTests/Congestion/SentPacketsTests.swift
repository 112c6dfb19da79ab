import Base
import Peer
import Testing
import Wire

@Suite struct `Sent packets` {
    private static func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 5_000_000_000 + milliseconds * 1_000_000)
    }

    /// Feedback as a receiver would write it.
    private func feedback(_ arrivals: [(Int64, Int64)], by builder: inout TransportFeedbackBuilder)
        -> [TransportFeedback]
    {
        builder.build(arrivals.map { .init(sequenceNumber: $0.0, time: Self.time($0.1)) })
    }

    @Test func `outcomes come in the order in which the packets were sent`() {
        var sent = SentPackets()
        for number in 0..<4 {
            #expect(sent.nextNumber == UInt16(number))
            sent.add(size: 1_000 + number, probe: number == 2 ? 7 : 0, at: Self.time(Int64(number) * 10))
        }
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        let told = feedback([(0, 30), (2, 51), (3, 60)], by: &builder)
        let outcomes = told.flatMap { sent.outcomes(of: $0, at: Self.time(100)) }
        #expect(outcomes.map(\.sent) == (0..<4).map { Self.time($0 * 10) })
        #expect(outcomes.map(\.size) == (0..<4).map { 1_000 + $0 + SentPackets.overhead })
        #expect(outcomes.map { $0.arrival == nil } == [false, true, false, false])
        #expect(outcomes.map(\.probe) == [nil, nil, 7, nil])
        if let first = outcomes[0].arrival, let last = outcomes[3].arrival {
            #expect(last - first == 30_000_000)
        }
    }

    @Test func `a packet first reported as lost is reported once more when it arrives`() {
        var sent = SentPackets()
        for number in 0..<3 { sent.add(size: 500, at: Self.time(Int64(number))) }
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        let first = feedback([(0, 20), (2, 22)], by: &builder)
        #expect(
            first.flatMap { sent.outcomes(of: $0, at: Self.time(50)) }.map(\.isLate) == [false, false, false])
        let second = feedback([(1, 60), (2, 22)], by: &builder)
        let late = second.flatMap { sent.outcomes(of: $0, at: Self.time(90)) }
        #expect(late.count == 1)
        #expect(late.first?.isLate == true)
        #expect(late.first?.arrival != nil)
        #expect(second.flatMap { sent.outcomes(of: $0, at: Self.time(91)) }.isEmpty)
    }

    @Test func `a packet reported lost and sent again is reported no more`() {
        var sent = SentPackets()
        for number in 0..<4 { sent.add(size: 500, at: Self.time(Int64(number))) }
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        let first = feedback([(0, 20), (3, 22)], by: &builder)
        let lost = first.flatMap { sent.outcomes(of: $0, at: Self.time(50)) }.filter { $0.arrival == nil }
        #expect(lost.map(\.number) == [1, 2])
        #expect((-1...4).map { sent.isLost($0) } == [false, false, true, true, false, false])
        sent.settle(1)
        #expect(!sent.isLost(1) && sent.isLost(2))
        // Neither what was never sent, nor what is no longer known, changes anything.
        for number in [-1, 4, 70_000] as [Int64] { sent.settle(number) }
        let second = feedback([(1, 60), (2, 61)], by: &builder)
        #expect(second.flatMap { sent.outcomes(of: $0, at: Self.time(90)) }.map(\.number) == [2])
    }

    @Test func `that a packet sent again has arrived is known, and no outcome`() {
        var sent = SentPackets()
        for number in 0..<4 { sent.add(size: 500, at: Self.time(Int64(number))) }
        #expect((-1...4).map { sent.departure(of: $0, at: Self.time(40)) }.compactMap(\.self).count == 4)
        #expect(sent.departure(of: 2, at: Self.time(40)) == Self.time(2))
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        for told in feedback([(0, 20), (3, 22)], by: &builder) {
            _ = sent.outcomes(of: told, at: Self.time(50))
        }
        for number in [1, 2] as [Int64] { sent.settle(number) }
        #expect(sent.isRepeated(1) && sent.isRepeated(2) && !sent.isLost(1))
        #expect(!sent.tellsOfRepeats && !sent.isRepeated(0) && !sent.isRepeated(9) && !sent.isRepeated(-1))
        for told in feedback([(1, 60), (3, 22)], by: &builder) {
            let outcomes = sent.outcomes(of: told, at: Self.time(90))
            #expect(outcomes.isEmpty)
        }
        #expect(!sent.isRepeated(1) && sent.isRepeated(2))
        #expect(sent.tellsOfRepeats)
    }

    @Test func `a feedback that got lost is missed, also where the numbers of feedbacks wrap`() {
        var sent = SentPackets()
        for number in 0..<300 { sent.add(size: 500, at: Self.time(Int64(number))) }
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        for number in 0..<300 as Range<Int64> {
            for told in feedback([(number, number + 20)], by: &builder) where number != 100 {
                _ = sent.outcomes(of: told, at: Self.time(400))
                let misses = sent.missesFeedback
                #expect(misses == (number == 101), "\(number)")
            }
        }
    }

    @Test func `a packet whose loss nobody reported cannot be settled`() {
        var sent = SentPackets()
        for number in 0..<2 { sent.add(size: 500, at: Self.time(Int64(number))) }
        sent.settle(0)
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        let told = feedback([(0, 20), (1, 21)], by: &builder)
        #expect(told.flatMap { sent.outcomes(of: $0, at: Self.time(50)) }.map(\.number) == [0, 1])
    }

    /// A large picture comes for longer than the receiver waits with its feedback.
    @Test func `packets sent together have one send time, in whichever feedback they are`() {
        var sent = SentPackets()
        let start = Self.time(0).advanced(byNanoseconds: 700)
        sent.add(size: 100, at: Self.time(-10))
        for _ in 0..<3 { sent.add(size: 1_200, at: start) }
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        let told = [[(0, 10), (1, 20)], [(2, 40)], [(3, 60)]].map { feedback($0, by: &builder) }
        let times = zip(told, [100, 250, 999] as [Int64]).flatMap { feedbacks, nanoseconds in
            let now = Self.time(70).advanced(byNanoseconds: nanoseconds)
            return feedbacks.flatMap { sent.outcomes(of: $0, at: now) }.map(\.sent)
        }
        #expect(times.count == 4)
        #expect(Set(times.dropFirst()).count == 1, "\(times)")
    }

    @Test func `packets whose feedback is lost are counted as unreported bytes`() {
        var sent = SentPackets()
        for number in 0..<10 { sent.add(size: 100 * (number + 1), at: Self.time(Int64(number))) }
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        let times = (0..<8 as Range<Int64>).map { ($0, 20 + $0) }
        let told = [times[..<2], times[2..<5], times[5..<7], times[7...]].map {
            feedback(Array($0), by: &builder)
        }
        // The second of them does not come.
        let outcomes = (told[0] + told[2] + told[3]).flatMap { sent.outcomes(of: $0, at: Self.time(50)) }
        // The third to the fifth: 300, 400 and 500 bytes with their headers.
        #expect(outcomes.map(\.untold) == [0, 0, 1_200 + 3 * SentPackets.overhead, 0, 0])
        var other = SentPackets()
        for number in 0..<4 { other.add(size: 100 * (number + 1), at: Self.time(Int64(number))) }
        let places = other.outcomes(
            of: [.init(place: 0, arrival: 1), .init(place: 3, arrival: 2)], at: Self.time(50))
        #expect(places.map(\.untold) == [0, 500 + 2 * SentPackets.overhead])
    }

    @Test func `keep their numbers beyond 65,536`() {
        var sent = SentPackets()
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        var outcomes = 0
        for number in 0..<70_000 as Range<Int64> {
            let now = Self.time(number / 2)
            #expect(sent.add(size: 1_200, at: now) == UInt16(truncatingIfNeeded: number))
            guard number % 100 == 99 else { continue }
            let told = feedback(((number - 99)...number).map { ($0, number / 2 + 20) }, by: &builder)
            for each in told.flatMap({ sent.outcomes(of: $0, at: now) }) {
                outcomes += 1
                #expect(each.arrival != nil)
                #expect(now.nanoseconds(since: each.sent) <= 50_000_000)
            }
        }
        #expect(outcomes == 70_000)
    }

    @Test func `the oldest sent packets are forgotten first`() {
        var sent = SentPackets()
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        for number in 0..<1_000 as Range<Int64> { sent.add(size: 900, at: Self.time(number)) }
        let told = feedback((0..<1_000).map { ($0, $0 + 10) }, by: &builder)
        let outcomes = told.flatMap { sent.outcomes(of: $0, at: Self.time(1_100)) }
        // Nothing was known of the receiver: the least is remembered.
        #expect(outcomes.count == 256)
        #expect(outcomes.last?.sent == Self.time(999))
        // It tells of packets, so more of them are remembered from now on.
        for number in 1_000..<4_000 as Range<Int64> { sent.add(size: 900, at: Self.time(number)) }
        let more = feedback((1_000..<4_000).map { ($0, $0 + 10) }, by: &builder)
        #expect(more.flatMap { sent.outcomes(of: $0, at: Self.time(4_100)) }.count == 2_048)
    }

    @Test func `packets that were never sent have no outcome`() {
        var sent = SentPackets()
        for number in 0..<10 as Range<Int64> { sent.add(size: 900, at: Self.time(number)) }
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        let told = feedback((10..<20).map { ($0, $0) }, by: &builder)
        #expect(told.flatMap { sent.outcomes(of: $0, at: Self.time(50)) }.isEmpty)
        // All of 16 bits at once, from anywhere.
        for base in stride(from: 0, to: 65_536, by: 997) as StrideTo<Int> {
            var bytes: [UInt8] = []
            bytes.append(contentsOf: [0x8F, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2])
            bytes.append(contentsOf: [UInt8(base >> 8), UInt8(base & 255), 0xFF, 0xFF, 0, 0, 0, 0])
            // Run lengths of packets that have not come.
            for _ in 0..<2 { bytes.append(contentsOf: [0x1F, 0xFF]) }
            let packets = (try? RTCPPacket.parseCompound(bytes.span)) ?? []
            for case .transportFeedback(let feedback) in packets {
                #expect(sent.outcomes(of: feedback, at: Self.time(60)).count <= 10)
            }
        }
    }
}

/// Feedback by other numbers than the transport-wide ones.
@Suite struct `Sent packets told of by their places` {
    private static func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 5_000_000_000 + milliseconds * 1_000_000)
    }

    @Test func `outcomes by place come in the order in which the packets were sent`() {
        var sent = SentPackets()
        for number in 0..<4 as Range<Int64> {
            #expect(sent.count == number)
            sent.add(size: 1_000, probe: number == 2 ? 7 : 0, at: Self.time(number))
        }
        let outcomes = sent.outcomes(
            of: [.init(place: 3, arrival: 30), .init(place: 0, arrival: 10), .init(place: 2, arrival: nil)],
            at: Self.time(50))
        #expect(sent.hasFeedback)
        #expect(outcomes.map(\.sent) == [0, 2, 3].map(Self.time))
        #expect(outcomes.map(\.arrival) == [10, nil, 30])
        #expect(outcomes.map(\.probe) == [nil, 7, nil])
        // Reports overlap: what was told is not told again, unless it was lost and has come.
        let again = sent.outcomes(
            of: [.init(place: 0, arrival: 10), .init(place: 2, arrival: 40), .init(place: 1, arrival: 20)],
            at: Self.time(60))
        #expect(again.map(\.arrival) == [20, 40])
        #expect(again.map(\.isLate) == [false, true])
    }

    @Test func `a place that was never sent or is forgotten has no outcome`() {
        var sent = SentPackets()
        #expect(sent.outcomes(of: [.init(place: 0, arrival: 1)], at: Self.time(0)).isEmpty)
        #expect(!sent.hasFeedback)
        for number in 0..<1_000 as Range<Int64> { sent.add(size: 900, at: Self.time(number)) }
        let places: [Int64] = [.min, -1, 0, 700, 743, 744, 999, 1_000, .max]
        let outcomes = sent.outcomes(
            of: places.map { .init(place: $0, arrival: 1) }, at: Self.time(1_100))
        #expect(outcomes.map(\.sent) == [744, 999].map(Self.time))
        #expect(sent.outcomes(of: [], at: Self.time(1_101)).isEmpty)
    }
}

@Suite struct `The clock of a receiver` {
    private func report(_ time: UInt32) -> CongestionControlFeedback {
        CongestionControlFeedback(senderSSRC: 1, streams: [], reportTime: time)
    }

    @Test func `the clock goes on where its reports wrap`() {
        var clock = ReceiverClock()
        #expect(clock.time(of: report(0xFFFF_0000)) == 0xFFFF_0000)
        #expect(clock.time(of: report(0x0000_8000)) == 0x1_0000_8000)
        // One that was overtaken.
        #expect(clock.time(of: report(0xFFFF_F000)) == 0xFFFF_F000)
        #expect(clock.time(of: report(0x0001_0000)) == 0x1_0001_0000)
    }

    @Test func `the clock gives the arrival time of a packet`() {
        let second = CongestionControlFeedback.ticksPerSecond
        #expect(ReceiverClock.arrival(.init(offset: 512), toldAt: 3 * second) == 2_500_000_000)
        #expect(ReceiverClock.arrival(.init(offset: 0), toldAt: 1) == 15_258)
        #expect(ReceiverClock.arrival(.init(offset: nil), toldAt: second) == nil)
        #expect(ReceiverClock.arrival(.init(offset: .max), toldAt: second) == nil)
        #expect(ReceiverClock.arrival(.missing, toldAt: second) == nil)
    }

    /// A client that lets the clock run ahead for ever does not trap.
    @Test func `the clock bears any reports`() {
        var clock = ReceiverClock()
        var time: UInt32 = 0
        for _ in 0..<400_000 {
            time &+= 0x7FFF_FFFF
            _ = ReceiverClock.arrival(.init(offset: 8_000), toldAt: clock.time(of: report(time)))
        }
        for time in [Int64.min, .max, 0] { _ = ReceiverClock.arrival(.init(offset: 8_000), toldAt: time) }
    }
}
