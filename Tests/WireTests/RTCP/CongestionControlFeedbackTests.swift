import Base
import TestSupport
import Testing
import Wire

private func parse(_ bytes: [UInt8]) throws -> CongestionControlFeedback {
    guard case .congestionControlFeedback(let feedback) = try RTCPPacket.parseCompound(bytes.span).first
    else {
        throw WireError.truncated
    }
    return feedback
}

/// A report of SSRC 0x01020304, made at 0x12345678, with these report blocks.
private func packet(_ blocks: [UInt8]) -> [UInt8] {
    let body: [UInt8] = [1, 2, 3, 4] + blocks + [0x12, 0x34, 0x56, 0x78]
    return [0x8B, 205, UInt8((body.count / 4) >> 8), UInt8(truncatingIfNeeded: body.count / 4)] + body
}

private func error(of bytes: [UInt8]) -> WireError? {
    let packets = try? RTCPPacket.parseCompound(bytes.span)
    guard case .unknown(let unknown) = packets?.first else { return nil }
    return unknown.error
}

/// - Source: RFC 8888 §3.1.
@Suite struct CongestionControlFeedbackParsing {
    @Test func `understands packets of two streams`() throws {
        let feedback = try parse(
            packet([
                // Three packets from 65,535 on, padded to whole words: 512/1024 s before the report, not
                // received, and with ECN-CE at the time of the report.
                0xAA, 0xBB, 0xCC, 0xDD, 0xFF, 0xFF, 0, 3, 0x82, 0x00, 0x00, 0x00, 0xE0, 0x00, 0, 0,
                // Two: longer ago than can be said, and not measured.
                0, 0, 0, 9, 0, 7, 0, 2, 0x9F, 0xFE, 0x9F, 0xFF,
            ]))
        #expect(feedback.senderSSRC == 0x0102_0304)
        #expect(feedback.reportTime == 0x1234_5678)
        #expect(feedback.streams.map(\.ssrc) == [0xAABB_CCDD, 9])
        #expect(feedback.streams.map(\.firstSequenceNumber) == [65_535, 7])
        let first = feedback.streams[0].metrics
        #expect(first.map(\.hasArrived) == [true, false, true])
        #expect(first.map(\.offset) == [512, nil, 0])
        // The longest time that can be said, and one that is longer.
        let longest = CongestionControlFeedback.Metric(offset: 0x1FFD)
        #expect([longest.offset, CongestionControlFeedback.Metric(offset: 0x1FFE).offset] == [0x1FFD, nil])
        #expect(first.map(\.mark) == [0, 0, 3])
        let second = feedback.streams[1].metrics
        #expect(second.map(\.hasArrived) == [true, true])
        #expect(second.map(\.offset) == [nil, nil])
    }

    @Test func `takes a report of nothing`() throws {
        #expect(try parse(packet([])).streams.isEmpty)
        let feedback = try parse(packet([0, 0, 0, 9, 0, 7, 0, 0]))
        #expect(feedback.streams == [.init(ssrc: 9, firstSequenceNumber: 7, metrics: [])])
    }

    /// The rest of a packet that has not come has to be ignored.
    @Test func `reads no time of what has not come`() throws {
        let feedback = try parse(packet([0, 0, 0, 9, 0, 7, 0, 2, 0x7F, 0x00, 0x80, 0x01]))
        #expect(feedback.streams[0].metrics == [.missing, .init(offset: 1)])
    }

    @Test func `refuses what is not whole`() {
        // Five packets in two words, and a stream without its length.
        #expect(error(of: packet([0, 0, 0, 9, 0, 7, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0])) == .truncated)
        #expect(error(of: packet([0, 0, 0, 9])) == .truncated)
        #expect(error(of: [0x8B, 205, 0, 1, 0, 0, 0, 1]) == .truncated)
        #expect(error(of: [0x8B, 205, 0, 0]) == .truncated)
        // More than a report may speak of, also where they were there.
        let count: [UInt8] = [0, 0, 0, 9, 0, 7, 0x40, 0x01]
        #expect(error(of: packet(count)) == .invalid(.congestionControlCount))
        let bytes = packet(count + [UInt8](repeating: 0, count: 32_772))
        #expect(error(of: bytes) == .invalid(.congestionControlCount))
    }

    @Test func `takes as many as a report may speak of`() throws {
        let bytes = packet([0, 0, 0, 9, 0, 7, 0x40, 0x00] + [UInt8](repeating: 0x80, count: 32_768))
        #expect(try parse(bytes).streams.map(\.metrics.count) == [CongestionControlFeedback.maximumMetrics])
    }

    @Test func `of noise never traps and is bounded by the length`() {
        var random = SeededGenerator(seed: 8)
        var understood = 0
        for _ in 0..<20_000 {
            var blocks: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<3, using: &random) {
                blocks.append(bigEndian: UInt32.random(in: 0...3, using: &random))
                blocks.append(bigEndian: UInt16.random(in: 0...UInt16.max, using: &random))
                let count = UInt16.random(in: 0...9, using: &random)
                blocks.append(bigEndian: Bool.random(using: &random) ? count : count ^ 1)
                for _ in 0..<(count + 1) / 2 {
                    blocks.append(bigEndian: UInt32.random(in: 0...UInt32.max, using: &random))
                }
            }
            guard let feedback = try? parse(packet(blocks)) else { continue }
            understood += 1
            #expect(feedback.streams.reduce(0) { $0 + $1.metrics.count } * 2 <= blocks.count)
            var bytes: [UInt8] = []
            RTCPPacket.congestionControlFeedback(feedback).append(to: &bytes)
            #expect((try? parse(bytes)) == feedback)
        }
        #expect(understood > 1_000)
    }
}

@Suite struct CongestionControlFeedbackBuilding {
    private var builder = CongestionControlFeedbackBuilder(senderSSRC: 0x0102_0304)

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    @Test mutating func `writes what the RFC has`() {
        builder.record(65_535, of: 0xAABB_CCDD, at: time(500))
        builder.record(1, of: 0xAABB_CCDD, at: time(1_000))
        var bytes: [UInt8] = []
        for report in builder.build(at: time(1_000)) {
            RTCPPacket.congestionControlFeedback(report).append(to: &bytes)
        }
        #expect(
            bytes == [
                0x8B, 205, 0, 6, 1, 2, 3, 4, 0xAA, 0xBB, 0xCC, 0xDD, 0xFF, 0xFF, 0, 3,
                0x82, 0x00, 0x00, 0x00, 0x80, 0x00, 0, 0, 0, 1, 0, 0,
            ])
        #expect(!builder.hasNews)
        #expect(builder.build(at: time(1_100)).isEmpty)
    }

    @Test mutating func `speaks again of what came late, and of all that follow`() {
        for number in [1, 3, 4] as [UInt16] { builder.record(number, of: 9, at: time(0)) }
        #expect(
            builder.build(at: time(10)).first?.streams.first?.metrics.map(\.hasArrived) == [
                true, false, true, true,
            ])
        builder.record(2, of: 9, at: time(20))
        builder.record(2, of: 9, at: time(25))
        let report = builder.build(at: time(30)).first
        #expect(report?.streams.first?.firstSequenceNumber == 2)
        #expect(report?.streams.first?.metrics.map(\.hasArrived) == [true, true, true])
        builder.record(6, of: 9, at: time(40))
        let next = builder.build(at: time(50)).first
        #expect(next?.streams.first?.firstSequenceNumber == 5)
        #expect(next?.streams.first?.metrics.map(\.hasArrived) == [false, true])
    }

    @Test mutating func `says what is too long ago or not yet there`() {
        builder.record(1, of: 9, at: time(0))
        builder.record(2, of: 9, at: time(7_990))
        builder.record(3, of: 9, at: time(9_100))
        let metrics = builder.build(at: time(9_000)).first?.streams.first?.metrics
        #expect(metrics?.map(\.hasArrived) == [true, true, true])
        #expect(metrics?.map(\.offset) == [nil, 1_034, nil])
    }

    @Test mutating func `is bounded`() {
        for stream in 0..<100 as Range<UInt32> {
            for number in 0..<200 as Range<UInt16> { builder.record(number &* 331, of: stream, at: time(0)) }
        }
        let reports = builder.build(at: time(1))
        var streams: Set<UInt32> = []
        for report in reports {
            streams.formUnion(report.streams.map(\.ssrc))
            var bytes: [UInt8] = []
            RTCPPacket.congestionControlFeedback(report).append(to: &bytes)
            #expect(bytes.count <= 1_000)
        }
        #expect(streams.count == CongestionControlFeedbackBuilder.maximumStreams)
        let told = reports.flatMap(\.streams).reduce(0) { $0 + $1.metrics.count }
        #expect(told <= 32 * Int(CongestionControlFeedbackBuilder.capacity))
    }
}
