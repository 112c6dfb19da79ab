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

    @Test func `are told of in the order in which they left`() {
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

    @Test func `that come after all are told of once more, and no others`() {
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

    @Test func `are forgotten, the oldest first`() {
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

    @Test func `that were never sent are not told of`() {
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
