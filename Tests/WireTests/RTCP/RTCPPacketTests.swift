import Testing
import TestSupport
import Wire

private let block = ReportBlock(
    ssrc: 0xBC5E_9A40, fractionLost: 0x40, cumulativeLost: -3, highestSequenceNumber: 0x0001_46E1,
    jitter: 273, lastSenderReport: 0x09F3_6432, delaySinceLastSenderReport: 150_137)

private let everyKind: [RTCPPacket] = [
    .senderReport(
        SenderReport(
            ssrc: 0x902F_9E2E, ntpTime: 0xDA8B_D1FC_DDDD_A05A, rtpTimestamp: 0xAAF4_EDD5, packetCount: 1,
            octetCount: 2, reports: [block])),
    .senderReport(SenderReport(ssrc: 1, ntpTime: 2, rtpTimestamp: 3, packetCount: 4, octetCount: 5)),
    .receiverReport(ReceiverReport(ssrc: 7, reports: [block, block])),
    .receiverReport(ReceiverReport(ssrc: 7, reports: [])),
    .sourceDescription(
        SourceDescription(chunks: [
            .init(ssrc: 1, canonicalName: "abc"), .init(ssrc: 2, canonicalName: ""),
            .init(ssrc: 3, items: []),
            .init(ssrc: 4, items: [.init(type: 1, text: "ab"), .init(type: 2, text: "Zoë")]),
        ])),
    .bye(Goodbye(ssrcs: [1, 2])),
    .bye(Goodbye(ssrcs: [], reason: "camera malfunction")),
    .nack(NegativeAcknowledgement(senderSSRC: 1, mediaSSRC: 2, lost: [65_530, 65_535, 0, 11, 100])),
    .pictureLossIndication(PictureLossIndication(senderSSRC: 1, mediaSSRC: 2)),
    .fullIntraRequest(
        FullIntraRequest(
            senderSSRC: 1,
            entries: [.init(ssrc: 2, sequenceNumber: 255), .init(ssrc: 3, sequenceNumber: 0)])),
    .receiverEstimatedMaximumBitrate(
        ReceiverEstimatedMaximumBitrate(senderSSRC: 1, bitrate: 0x3_FFFF << 3, ssrcs: [1_215_622_422])),
    .extendedReport(
        ExtendedReport(
            ssrc: 1,
            blocks: [
                .receiverReferenceTime(0x0102_0304_0506_0708),
                .delaySinceLastReceiverReport([
                    .init(ssrc: 9, lastReceiverReference: 10, delay: 11),
                    .init(ssrc: 12, lastReceiverReference: 13, delay: 14),
                ]),
            ])),
]

private func bytes(_ packets: [RTCPPacket]) -> [UInt8] {
    var bytes: [UInt8] = []
    for packet in packets { packet.append(to: &bytes) }
    return bytes
}

private func parse(_ bytes: [UInt8]) throws -> [RTCPPacket] {
    try RTCPPacket.parseCompound(bytes.span)
}

@Suite struct RTCPPackets {
    @Test(arguments: everyKind) func `are read back as they were written`(packet: RTCPPacket) throws {
        let written = bytes([packet])
        #expect(written.count.isMultiple(of: 4))
        #expect(try parse(written) == [packet])
    }

    @Test func `are read out of a compound in order`() throws {
        #expect(try parse(bytes(everyKind)) == everyKind)
    }

    @Test func `are refused wherever the datagram is cut inside a packet`() throws {
        let whole = bytes(everyKind)
        var ends: Set<Int> = []
        for index in everyKind.indices { ends.insert(bytes(Array(everyKind[...index])).count) }
        for length in 0..<whole.count where !ends.contains(length) {
            #expect(throws: WireError.truncated) { try parse(Array(whole.prefix(length))) }
        }
    }

    @Test(arguments: everyKind) func `with a body cut short are stepped over`(packet: RTCPPacket) throws {
        let written = bytes([packet])
        for words in 1..<(written.count / 4) {
            var short = Array(written.prefix(words * 4))
            short[3] = UInt8(words - 1)
            let packets = try parse(short + bytes([.bye(Goodbye(ssrcs: [5]))]))
            #expect(packets.count == 2)
            #expect(packets.last == .bye(Goodbye(ssrcs: [5])))
            #expect(packets.first != packet)
        }
    }

    @Test func `of unknown types are stepped over`() throws {
        let packets = try parse([0x84, 204, 0, 1, 1, 2, 3, 4] + bytes([everyKind[5]]))
        guard case .unknown(let unknown) = packets.first else {
            Issue.record("an application packet is not known")
            return
        }
        #expect(unknown.packetType == 204)
        #expect(unknown.countOrFormat == 4)
        #expect(unknown.error == nil)
        #expect(packets.last == everyKind[5])
        #expect(bytes([packets[0]]) == [])
    }

    @Test func `may be padded`() throws {
        let padded: [UInt8] = [0xA0, 201, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 8]
        #expect(try parse(padded) == [.receiverReport(ReceiverReport(ssrc: 9, reports: []))])
        for count in [0, 13, 255] as [UInt8] {
            var wrong = padded
            wrong[15] = count
            #expect(throws: WireError.invalid(.rtcpPadding)) { try parse(wrong) }
        }
    }

    @Test func `of another version are refused`() {
        #expect(throws: WireError.invalid(.rtcpVersion)) { try parse([0x41, 201, 0, 1, 0, 0, 0, 9]) }
    }

    @Test func `are read up to a limit`() throws {
        let many = bytes(Array(repeating: everyKind[8], count: 100))
        #expect(try parse(many).count == RTCPPacket.maximumPerCompound)
    }

    @Test func `made of noise never trap`() throws {
        var random = SeededGenerator(seed: 4)
        let whole = bytes(everyKind)
        for _ in 0..<5_000 {
            var noisy = whole
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                noisy[Int.random(in: noisy.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            guard let packets = try? parse(noisy) else { continue }
            let known = packets.filter { if case .unknown = $0 { false } else { true } }
            #expect(try parse(bytes(packets)).count >= min(known.count, 1))
        }
    }
}

@Suite struct RTCPFields {
    /// One block that lost a quarter and, by duplicates, minus three packets in all.
    @Test func `keep signs and fixed points`() throws {
        let packets = try parse([
            0x81, 0xC9, 0x00, 0x07, 0x90, 0x2F, 0x9E, 0x2E, 0xBC, 0x5E, 0x9A, 0x40, 0x40, 0xFF, 0xFF, 0xFD,
            0x00, 0x01, 0x46, 0xE1, 0x00, 0x00, 0x01, 0x11, 0x09, 0xF3, 0x64, 0x32, 0x00, 0x02, 0x4A, 0x79,
        ])
        #expect(packets == [.receiverReport(ReceiverReport(ssrc: 0x902F_9E2E, reports: [block]))])
    }

    @Test func `clamp what 24 bits cannot say`() throws {
        var extreme = block
        extreme.cumulativeLost = .max
        let packet = RTCPPacket.receiverReport(ReceiverReport(ssrc: 1, reports: [extreme]))
        guard case .receiverReport(let read) = try parse(bytes([packet])).first else {
            Issue.record("a receiver report comes back")
            return
        }
        #expect(read.reports.first?.cumulativeLost == 0x7F_FFFF)
    }

    @Test func `hold no more reports than a count can say`() throws {
        let packet = RTCPPacket.receiverReport(
            ReceiverReport(ssrc: 1, reports: Array(repeating: block, count: 40)))
        guard case .receiverReport(let read) = try parse(bytes([packet])).first else {
            Issue.record("a receiver report comes back")
            return
        }
        #expect(read.reports.count == 31)
    }

    @Test func `know a placeholder`() {
        var report = SenderReport(
            ssrc: 1, ntpTime: 0x1122_3344_5566_7788, rtpTimestamp: .max, packetCount: 0, octetCount: 0)
        #expect(report.isPlaceholder)
        report.packetCount = 1
        #expect(!report.isPlaceholder)
    }

    @Test func `name lost packets by number and mask`() throws {
        let lost: [UInt16] = [10, 11, 26, 27]
        let packet = RTCPPacket.nack(NegativeAcknowledgement(senderSSRC: 1, mediaSSRC: 2, lost: lost))
        let written = bytes([packet])
        #expect(Array(written[12...]) == [0, 10, 0x80, 0x01, 0, 27, 0, 0])
        #expect(try parse(written) == [packet])
    }

    @Test func `name no more lost packets than the limit`() throws {
        var written: [UInt8] = [0x81, 205, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]
        for index in 0..<200 as Range<UInt16> {
            written.append(bigEndian: index * 17)
            written.append(bigEndian: UInt16.max)
        }
        written[3] = UInt8(written.count / 4 - 1)
        guard case .nack(let nack) = try parse(written).first else {
            Issue.record("a NACK comes back")
            return
        }
        #expect(nack.lost == Array(0..<UInt16(NegativeAcknowledgement.maximumLost)))
    }

    /// Exponent 6, mantissa 0x220DF: 8,927,168 bit/s for one source.
    @Test func `hold a bitrate as mantissa and exponent`() throws {
        let packets = try parse([
            143, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 82, 69, 77, 66, 1, 26, 32, 223, 72, 116, 237, 22,
        ])
        let expected = ReceiverEstimatedMaximumBitrate(
            senderSSRC: 1, bitrate: 8_927_168, ssrcs: [1_215_622_422])
        #expect(packets == [.receiverEstimatedMaximumBitrate(expected)])
    }

    @Test(arguments: [0, 1, 0x3_FFFF, 0x4_0000, 2_500_001, UInt64.max >> 1, .max])
    func `round a bitrate down and never overflow`(bitrate: UInt64) throws {
        let packet = ReceiverEstimatedMaximumBitrate(senderSSRC: 1, bitrate: bitrate, ssrcs: [])
        guard
            case .receiverEstimatedMaximumBitrate(let read) = try parse(
                bytes([.receiverEstimatedMaximumBitrate(packet)])
            ).first
        else {
            Issue.record("an estimate comes back")
            return
        }
        #expect(read.bitrate <= bitrate)
        #expect(bitrate - read.bitrate <= bitrate >> 17)
    }

    @Test func `take an absurd bitrate for no limit`() throws {
        let packets = try parse([
            143, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 82, 69, 77, 66, 0, 0xFF, 0xFF, 0xFF,
        ])
        let expected = ReceiverEstimatedMaximumBitrate(senderSSRC: 1, bitrate: .max, ssrcs: [])
        #expect(packets == [.receiverEstimatedMaximumBitrate(expected)])
    }
}
