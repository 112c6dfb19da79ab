import Base
import Testing
import TestSupport
import Wire

private func parse(_ bytes: [UInt8]) throws -> TransportFeedback {
    guard case .transportFeedback(let feedback) = try RTCPPacket.parseCompound(bytes.span).first else {
        throw WireError.truncated
    }
    return feedback
}

/// A feedback packet about packets from 153 on, with these chunks and time differences.
private func packet(count: UInt16, reference: UInt32 = 4_057_090, _ rest: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = [0x8F, 205, 0, 0, 0xFA, 0x17, 0xFA, 0x17, 0x43, 0x03, 0x2F, 0xA0, 0, 153]
    bytes.append(bigEndian: count)
    bytes.append(bigEndian: reference << 8 | 23)
    bytes += rest
    while !bytes.count.isMultiple(of: 4) { bytes.append(0) }
    bytes[2] = UInt8((bytes.count / 4 - 1) >> 8)
    bytes[3] = UInt8(truncatingIfNeeded: bytes.count / 4 - 1)
    return bytes
}

@Suite struct TransportFeedbackParsing {
    /// One run-length chunk and one small delta.
    @Test func `understands a run of one`() throws {
        let feedback = try parse(packet(count: 1, [0x20, 0x01, 0x94]))
        #expect(feedback.senderSSRC == 0xFA17_FA17)
        #expect(feedback.mediaSSRC == 0x4303_2FA0)
        #expect(feedback.baseSequenceNumber == 153)
        #expect(feedback.statusCount == 1)
        #expect(feedback.referenceTime == 4_057_090)
        #expect(feedback.feedbackCount == 23)
        #expect(feedback.arrivals == [.init(sequenceNumber: 153, ticks: 4_057_090 * 256 + 0x94)])
    }

    @Test func `understands vectors of one and two bits`() throws {
        // 14 of one bit: received, missing, received; then 7 of two bits: missing, small, large, the rest
        // missing.
        let feedback = try parse(
            packet(count: 19, reference: 1, [0xA8, 0x00, 0xC6, 0x00, 4, 8, 1, 0xFF, 0xFE]))
        #expect(
            feedback.arrivals == [
                .init(sequenceNumber: 153, ticks: 260), .init(sequenceNumber: 155, ticks: 268),
                .init(sequenceNumber: 168, ticks: 269), .init(sequenceNumber: 169, ticks: 267),
            ])
    }

    @Test func `knows that the reference time is signed`() throws {
        let feedback = try parse(packet(count: 1, reference: 0xFF_FFFF, [0x20, 0x01, 0x01]))
        #expect(feedback.referenceTime == -1)
        #expect(feedback.arrivals.first?.ticks == -255)
    }

    @Test(
        arguments: [
            [0x60, 0x01, 0, 0],  // the reserved symbol in a run
            [0xF0, 0x00, 0, 0],  // and in a vector
            [0x00, 0x00, 0, 0],  // a run of none
        ] as [[UInt8]]) func `refuses what the draft reserves`(rest: [UInt8])
    {
        #expect(throws: WireError.truncated) { try parse(packet(count: 1, rest)) }
        let packets = try? RTCPPacket.parseCompound(packet(count: 1, rest).span)
        guard case .unknown(let unknown) = packets?.first else {
            Issue.record("must be stepped over")
            return
        }
        #expect(unknown.error == .invalid(.transportFeedbackStatus))
    }

    @Test func `refuses more arrivals than there are bytes`() {
        let packets = try? RTCPPacket.parseCompound(packet(count: 60_000, [0x3F, 0xFF, 0, 0]).span)
        guard case .unknown(let unknown) = packets?.first else {
            Issue.record("must be stepped over")
            return
        }
        #expect(unknown.error == .truncated)
    }

    @Test func `of noise never traps and is bounded by the length`() {
        var random = SeededGenerator(seed: 5)
        var understood = 0
        for _ in 0..<20_000 {
            let rest = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let bytes = packet(count: .random(in: 0...200, using: &random), rest)
            guard let feedback = try? parse(bytes) else { continue }
            understood += 1
            #expect(feedback.arrivals.count <= bytes.count)
        }
        #expect(understood > 100)
    }
}

@Suite struct TransportFeedbackBuilding {
    private var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)

    private func arrival(_ number: Int64, milliseconds: Int64) -> TransportFeedbackBuilder.Arrival {
        .init(
            sequenceNumber: number,
            time: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
    }

    /// Writes and reads each packet.
    private func roundTrip(_ packets: [TransportFeedback]) throws -> [TransportFeedback] {
        try packets.map { packet in
            var bytes: [UInt8] = []
            RTCPPacket.transportFeedback(packet).append(to: &bytes)
            #expect(bytes.count <= TransportFeedbackBuilder.maximumLength + 40)
            return try parse(bytes)
        }
    }

    @Test mutating func `makes one packet of neighbours`() throws {
        let packets = builder.build([arrival(7, milliseconds: 64), arrival(8, milliseconds: 65)])
        var bytes: [UInt8] = []
        packets.forEach { RTCPPacket.transportFeedback($0).append(to: &bytes) }
        #expect(
            bytes == [
                0x8F, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 7, 0, 2, 0, 0, 1, 0, 0x20, 0x02, 0, 4,
            ])
    }

    @Test mutating func `speaks of what was lost between two feedbacks`() throws {
        _ = builder.build([arrival(7, milliseconds: 1)])
        let packets = builder.build([arrival(10, milliseconds: 2)])
        #expect(packets.map(\.baseSequenceNumber) == [8])
        #expect(packets.map(\.statusCount) == [3])
        #expect(packets.map(\.feedbackCount) == [1])
    }

    @Test mutating func `of a late packet does not call received ones missing`() throws {
        _ = builder.build([arrival(7, milliseconds: 1), arrival(9, milliseconds: 2)])
        let packets = builder.build([arrival(8, milliseconds: 3), arrival(12, milliseconds: 4)])
        #expect(packets.map(\.baseSequenceNumber) == [8, 10])
        #expect(packets.map(\.statusCount) == [1, 3])
    }

    @Test mutating func `opens a packet when time jumps further than a difference can say`() throws {
        let packets = builder.build([arrival(1, milliseconds: 0), arrival(2, milliseconds: 9_000)])
        #expect(packets.map(\.baseSequenceNumber) == [1, 2])
        #expect(try roundTrip(packets) == packets)
    }

    @Test mutating func `opens a packet when numbers jump`() throws {
        let packets = builder.build([arrival(1, milliseconds: 0), arrival(20_000, milliseconds: 1)])
        #expect(packets.map(\.baseSequenceNumber) == [1, 20_000])
        #expect(packets.map(\.statusCount) == [1, 1])
    }

    @Test mutating func `counts the earlier of two copies`() throws {
        let packets = builder.build([
            arrival(3, milliseconds: 9), arrival(3, milliseconds: 5), arrival(4, milliseconds: 10),
        ])
        #expect(packets.flatMap { $0.arrivals.map(\.ticks) } == [20, 40])
    }

    @Test mutating func `makes nothing of nothing`() {
        #expect(builder.build([]) == [])
    }

    @Test mutating func `wraps the reference time after 12 days`() throws {
        let late = Int64(1 << 23) * 64
        let packets = builder.build([arrival(1, milliseconds: late), arrival(2, milliseconds: late + 1)])
        #expect(packets.map(\.referenceTime) == [-(1 << 23)])
        #expect(try roundTrip(packets) == packets)
    }

    /// The whole story of a lossy, jittery transport, read back from the bytes of all feedback packets.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `tells of every packet once, with its time`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var builder = TransportFeedbackBuilder(senderSSRC: 1, mediaSSRC: 2)
        let loss = Int.random(in: 0...90, using: &random)
        let jitter = Int64.random(in: 1...400_000_000, using: &random)
        let first = Int64.random(in: 0...200_000, using: &random)
        var number = first
        var time = Int64.random(in: -1_000_000_000...1_000_000_000, using: &random)
        var sent: [Int64: Int64] = [:]
        var told: [Int64: Int64] = [:]
        var missing: Set<Int64> = []
        var unwrapper = SequenceUnwrapper()
        _ = unwrapper.unwrap(UInt16(truncatingIfNeeded: first))
        let shift = first - Int64(UInt16(truncatingIfNeeded: first))
        for _ in 0..<30 {
            var batch: [TransportFeedbackBuilder.Arrival] = []
            for _ in 0..<Int.random(in: 0...400, using: &random) {
                time += Int64.random(in: 0...jitter, using: &random)
                if Int.random(in: 0..<100, using: &random) >= loss {
                    sent[number] = time
                    batch.append(.init(sequenceNumber: number, time: MonotonicTime(nanoseconds: time)))
                }
                number += 1
            }
            batch.shuffle(using: &random)
            let built = builder.build(batch)
            let packets = try roundTrip(built)
            #expect(packets == built)
            for packet in packets {
                let base = unwrapper.unwrap(packet.baseSequenceNumber) + shift
                var absent = Set(base..<(base + Int64(packet.statusCount)))
                for arrival in packet.arrivals {
                    let index = base + Int64(arrival.sequenceNumber &- packet.baseSequenceNumber)
                    #expect(told.updateValue(arrival.ticks, forKey: index) == nil)
                    absent.remove(index)
                }
                #expect(missing.isDisjoint(with: absent))
                missing.formUnion(absent)
            }
        }
        #expect(Set(told.keys) == Set(sent.keys))
        #expect(missing.isDisjoint(with: sent.keys))
        if let lowest = sent.keys.min(), let highest = sent.keys.max() {
            #expect(missing.union(told.keys) == Set(lowest...highest))
        }
        for (number, nanoseconds) in sent {
            guard let ticks = told[number] else { continue }
            let error = nanoseconds - ticks * TransportFeedback.nanosecondsPerTick
            #expect(error >= 0 && error < TransportFeedback.nanosecondsPerTick)
        }
    }
}
