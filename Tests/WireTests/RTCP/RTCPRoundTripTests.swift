import TestSupport
import Testing
import Wire

/// Makes packets at random, each within what one packet can say.
private struct PacketMaker {
    static let kinds = 11
    private var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func packet(ofKind kind: Int) -> RTCPPacket {
        switch kind {
        case 0: .senderReport(senderReport())
        case 1: .receiverReport(ReceiverReport(ssrc: word(), reports: several(31) { $0.block() }))
        case 2: .sourceDescription(sourceDescription())
        case 3:
            .bye(Goodbye(ssrcs: several(31) { $0.word() }, reason: flip() ? text() : nil))
        case 4:
            .nack(NegativeAcknowledgement(senderSSRC: word(), mediaSSRC: word(), lost: ascending()))
        case 5: .pictureLossIndication(PictureLossIndication(senderSSRC: word(), mediaSSRC: word()))
        case 6: .fullIntraRequest(FullIntraRequest(senderSSRC: word(), entries: several(64) { $0.entry() }))
        case 7: .receiverEstimatedMaximumBitrate(estimate())
        case 8: .extendedReport(ExtendedReport(ssrc: word(), blocks: several(32) { $0.extendedBlock() }))
        case 9: .congestionControlFeedback(feedback())
        default: .senderReport(emptyReport())
        }
    }

    mutating func compound() -> [RTCPPacket] {
        several(20) { maker in
            let kind = Int.random(in: 0..<Self.kinds, using: &maker.random)
            return maker.packet(ofKind: kind)
        }
    }

    /// Sequence numbers from anywhere, in any order, some of them twice.
    mutating func scattered() -> [UInt16] {
        let first = UInt16.random(in: 0...UInt16.max, using: &random)
        var numbers = several(300) { maker in
            first &+ UInt16.random(in: 0...2_000, using: &maker.random)
        }
        numbers += numbers.prefix(10)
        numbers.shuffle(using: &random)
        return numbers
    }

    private mutating func word() -> UInt32 {
        .random(in: 0...UInt32.max, using: &random)
    }

    private mutating func flip() -> Bool {
        .random(using: &random)
    }

    private mutating func several<Element>(_ most: Int, make: (inout Self) -> Element) -> [Element] {
        var made: [Element] = []
        for _ in 0..<Int.random(in: 0...most, using: &random) { made.append(make(&self)) }
        return made
    }

    /// At most 240 bytes, of characters of each length that UTF-8 has.
    private mutating func text() -> String {
        let characters: [Character] = ["a", "Z", "é", "√", "🎥"]
        let chosen: [Character] = several(60) { maker in
            characters[Int.random(in: 0..<characters.count, using: &maker.random)]
        }
        return String(chosen)
    }

    private mutating func block() -> ReportBlock {
        ReportBlock(
            ssrc: word(), fractionLost: UInt8(truncatingIfNeeded: word()),
            cumulativeLost: .random(in: -0x80_0000...0x7F_FFFF, using: &random),
            highestSequenceNumber: word(), jitter: word(), lastSenderReport: word(),
            delaySinceLastSenderReport: word())
    }

    private mutating func senderReport() -> SenderReport {
        var report = emptyReport()
        report.reports = several(31) { $0.block() }
        return report
    }

    private mutating func emptyReport() -> SenderReport {
        SenderReport(
            ssrc: word(), ntpTime: .random(in: 0...UInt64.max, using: &random), rtpTimestamp: word(),
            packetCount: word(), octetCount: word())
    }

    private mutating func sourceDescription() -> SourceDescription {
        SourceDescription(
            chunks: several(31) { maker in
                SourceDescription.Chunk(
                    ssrc: maker.word(),
                    items: maker.several(2) { maker in
                        .init(type: .random(in: 1...UInt8.max, using: &maker.random), text: maker.text())
                    })
            })
    }

    private mutating func entry() -> FullIntraRequest.Entry {
        .init(ssrc: word(), sequenceNumber: UInt8(truncatingIfNeeded: word()))
    }

    /// A rate that 18 bits and an exponent can say.
    private mutating func estimate() -> ReceiverEstimatedMaximumBitrate {
        let exponent = UInt64.random(in: 0...46, using: &random)
        let rate = UInt64.random(in: 0...0x3_FFFF, using: &random) << exponent
        return ReceiverEstimatedMaximumBitrate(
            senderSSRC: word(), bitrate: rate, ssrcs: several(255) { $0.word() })
    }

    private mutating func extendedBlock() -> ExtendedReport.Block {
        guard flip() else { return .receiverReferenceTime(.random(in: 0...UInt64.max, using: &random)) }
        return .delaySinceLastReceiverReport(
            several(64) { maker in
                .init(ssrc: maker.word(), lastReceiverReference: maker.word(), delay: maker.word())
            })
    }

    private mutating func feedback() -> CongestionControlFeedback {
        let streams = several(8) { maker in
            CongestionControlFeedback.Stream(
                ssrc: maker.word(), firstSequenceNumber: UInt16(truncatingIfNeeded: maker.word()),
                metrics: maker.several(50) { $0.metric() })
        }
        return CongestionControlFeedback(senderSSRC: word(), streams: streams, reportTime: word())
    }

    private mutating func metric() -> CongestionControlFeedback.Metric {
        guard flip() else { return .missing }
        let offset = UInt16.random(in: 0...0x1FFF, using: &random)
        return .init(offset: flip() ? offset : nil, mark: .random(in: 0...3, using: &random))
    }

    /// Each number once, in order, over the wrap of 16 bits.
    private mutating func ascending() -> [UInt16] {
        var number = UInt16.random(in: 65_000...UInt16.max, using: &random)
        return several(900) { maker in
            number &+= .random(in: 1...40, using: &maker.random)
            return number
        }
    }
}

private func written(_ packets: [RTCPPacket]) -> [UInt8] {
    var bytes: [UInt8] = []
    for packet in packets { packet.append(to: &bytes) }
    return bytes
}

private func read(_ bytes: [UInt8]) throws -> [RTCPPacket] {
    try RTCPPacket.parseCompound(bytes.span)
}

@Suite struct `RTCP made at random` {
    @Test(arguments: 0..<PacketMaker.kinds) func `is read as it was written`(kind: Int) throws {
        var maker = PacketMaker(seed: UInt64(kind))
        for _ in 0..<200 {
            let packet = maker.packet(ofKind: kind)
            #expect(try read(written([packet])) == [packet])
        }
    }

    @Test(arguments: 0..<30 as Range<UInt64>)
    func `is read in the order of its packets`(seed: UInt64) throws {
        var maker = PacketMaker(seed: seed)
        for _ in 0..<20 {
            let packets = maker.compound()
            guard !packets.isEmpty else { continue }
            #expect(try read(written(packets)) == packets)
        }
    }

    /// A packet cut short must not take the next one's bytes for its own.
    @Test(arguments: 0..<PacketMaker.kinds)
    func `leaves the next packet alone where one is cut short`(kind: Int) throws {
        var maker = PacketMaker(seed: 100 + UInt64(kind))
        let next = RTCPPacket.pictureLossIndication(PictureLossIndication(senderSSRC: 8, mediaSSRC: 9))
        for _ in 0..<20 {
            let packet = maker.packet(ofKind: kind)
            let whole = written([packet])
            for words in 1..<min(whole.count / 4, 60) {
                var short = Array(whole.prefix(words * 4))
                short[2] = 0
                short[3] = UInt8(words - 1)
                let packets = try read(short + written([next]))
                #expect(packets.count == 2)
                #expect(packets.first != packet)
                #expect(packets.last == next)
            }
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `requests each lost packet, in whatever order they are named`(seed: UInt64) throws {
        var maker = PacketMaker(seed: seed)
        let lost = maker.scattered()
        let packet = NegativeAcknowledgement(senderSSRC: 1, mediaSSRC: 2, lost: lost)
        guard case .nack(let nack) = try read(written([.nack(packet)])).first else {
            Issue.record("a NACK comes back")
            return
        }
        #expect(Set(nack.lost) == Set(lost))
    }
}

/// What is sent of a packet that has more than the format, or the reader, allows: always the first ones.
@Suite struct `RTCP with too much in it` {
    private let next = RTCPPacket.bye(Goodbye(ssrcs: [77]))

    /// The packet as it is read, with the next one after it.
    private func sent(_ packet: RTCPPacket) throws -> RTCPPacket {
        let packets = try read(written([packet, next]))
        try #require(packets.count == 2)
        #expect(packets[1] == next)
        return packets[0]
    }

    private static func block(_ number: UInt32) -> ReportBlock {
        ReportBlock(
            ssrc: number, fractionLost: 0, cumulativeLost: 0, highestSequenceNumber: 0, jitter: 0,
            lastSenderReport: 0, delaySinceLastSenderReport: 0)
    }

    @Test func `reports on the first sources`() throws {
        let blocks = (0..<40 as Range<UInt32>).map(Self.block)
        let few = Array(blocks.prefix(31))
        var report = SenderReport(
            ssrc: 1, ntpTime: 2, rtpTimestamp: 3, packetCount: 4, octetCount: 5, reports: blocks)
        let sender = try sent(.senderReport(report))
        report.reports = few
        #expect(sender == .senderReport(report))
        let receiver = try sent(.receiverReport(ReceiverReport(ssrc: 1, reports: blocks)))
        #expect(receiver == .receiverReport(ReceiverReport(ssrc: 1, reports: few)))
    }

    @Test func `describes the first sources`() throws {
        let chunks = (0..<40 as Range<UInt32>).map { SourceDescription.Chunk(ssrc: $0, canonicalName: "a") }
        let packet = try sent(.sourceDescription(SourceDescription(chunks: chunks)))
        #expect(packet == .sourceDescription(SourceDescription(chunks: Array(chunks.prefix(31)))))
    }

    @Test func `says goodbye to the first sources`() throws {
        let packet = try sent(.bye(Goodbye(ssrcs: Array(0..<40), reason: "late")))
        #expect(packet == .bye(Goodbye(ssrcs: Array(0..<31), reason: "late")))
    }

    @Test func `requests the first lost packets`() throws {
        let lost = (0..<1_100 as Range<UInt16>).map { $0 * 3 }
        let packet = try sent(.nack(NegativeAcknowledgement(senderSSRC: 1, mediaSSRC: 2, lost: lost)))
        let few = Array(lost.prefix(NegativeAcknowledgement.maximumLost))
        #expect(packet == .nack(NegativeAcknowledgement(senderSSRC: 1, mediaSSRC: 2, lost: few)))
    }

    @Test func `requests key frames of the first streams`() throws {
        let entries = (0..<70 as Range<UInt32>).map { FullIntraRequest.Entry(ssrc: $0, sequenceNumber: 1) }
        let packet = try sent(.fullIntraRequest(FullIntraRequest(senderSSRC: 1, entries: entries)))
        let few = Array(entries.prefix(FullIntraRequest.maximumEntries))
        #expect(packet == .fullIntraRequest(FullIntraRequest(senderSSRC: 1, entries: few)))
    }

    @Test func `names the first streams of an estimate`() throws {
        let estimate = ReceiverEstimatedMaximumBitrate(senderSSRC: 1, bitrate: 2, ssrcs: Array(0..<300))
        let packet = try sent(.receiverEstimatedMaximumBitrate(estimate))
        let few = ReceiverEstimatedMaximumBitrate(senderSSRC: 1, bitrate: 2, ssrcs: Array(0..<255))
        #expect(packet == .receiverEstimatedMaximumBitrate(few))
    }

    @Test func `has the first blocks of an extended report`() throws {
        let delays = (0..<70 as Range<UInt32>).map {
            ExtendedReport.DelaySinceLast(ssrc: $0, lastReceiverReference: 1, delay: 2)
        }
        let blocks = Array(repeating: ExtendedReport.Block.delaySinceLastReceiverReport(delays), count: 40)
        let packet = try sent(.extendedReport(ExtendedReport(ssrc: 1, blocks: blocks)))
        let few = Array(
            repeating: ExtendedReport.Block.delaySinceLastReceiverReport(Array(delays.prefix(64))),
            count: ExtendedReport.maximumBlocks)
        #expect(packet == .extendedReport(ExtendedReport(ssrc: 1, blocks: few)))
    }

    @Test func `tells of the first packets of a stream`() throws {
        let most = CongestionControlFeedback.maximumMetrics
        var stream = CongestionControlFeedback.Stream(
            ssrc: 1, firstSequenceNumber: 2, metrics: Array(repeating: .init(offset: 3), count: most + 5))
        let feedback = CongestionControlFeedback(senderSSRC: 1, streams: [stream], reportTime: 4)
        let packet = try sent(.congestionControlFeedback(feedback))
        stream.metrics.removeLast(5)
        let few = CongestionControlFeedback(senderSSRC: 1, streams: [stream], reportTime: 4)
        #expect(packet == .congestionControlFeedback(few))
    }

    /// A text of 400 bytes, which may be cut within a character.
    @Test func `cuts long texts, and nothing after them`() throws {
        let long = String(repeating: "é", count: 200)
        guard case .bye(let goodbye) = try sent(.bye(Goodbye(ssrcs: [1], reason: long))) else {
            Issue.record("a goodbye comes back")
            return
        }
        let reason = try #require(goodbye.reason)
        #expect(reason.hasPrefix(String(repeating: "é", count: 127)))
        #expect(reason.count <= 128)
        let chunk = SourceDescription.Chunk(ssrc: 1, canonicalName: long)
        let second = SourceDescription.Chunk(ssrc: 2, canonicalName: "b")
        let packet = try sent(.sourceDescription(SourceDescription(chunks: [chunk, second])))
        guard case .sourceDescription(let description) = packet else {
            Issue.record("a description comes back")
            return
        }
        #expect(description.chunks.map(\.ssrc) == [1, 2])
        #expect(description.chunks.last == second)
    }
}
