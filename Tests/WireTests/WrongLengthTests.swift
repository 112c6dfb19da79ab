import TestSupport
import Testing
import Wire

private func written(_ packet: RTCPPacket) -> [UInt8] {
    var bytes: [UInt8] = []
    packet.append(to: &bytes)
    return bytes
}

private func written(_ value: AMF0Value) -> [UInt8] {
    var bytes: [UInt8] = []
    value.append(to: &bytes)
    return bytes
}

/// Formats whose readers must not believe a length: neither read past the end nor take one value for another.
@Suite struct `What has lengths in it` {
    /// A good input, where its length fields are, and how it is read.
    struct Format: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        /// Offset and width of each field, in bytes.
        let lengths: [(offset: Int, width: Int)]
        /// Whether each prefix of the input is refused; otherwise it is read as something else.
        let refusesPrefixes: Bool
        /// Describes what was read, in words that differ for different values.
        let read: @Sendable ([UInt8]) throws -> String

        init(
            _ name: String, _ bytes: [UInt8], _ lengths: [(offset: Int, width: Int)],
            refusesPrefixes: Bool = true, read: @escaping @Sendable ([UInt8]) throws -> String
        ) {
            testDescription = name
            self.bytes = bytes
            self.lengths = lengths
            self.refusesPrefixes = refusesPrefixes
            self.read = read
        }

        /// An RTCP packet, whose own length is one of the fields.
        static func rtcp(
            _ name: String, _ packet: RTCPPacket, _ lengths: [(offset: Int, width: Int)]
        ) -> Format {
            Format(name, written(packet), [(offset: 2, width: 2)] + lengths) { bytes in
                String(describing: try RTCPPacket.parseCompound(bytes.span))
            }
        }

        static func amf(_ name: String, _ value: AMF0Value, _ width: Int) -> Format {
            Format(name, written(value), [(1, width)]) { bytes in
                let values = try AMF0Value.sequence(parsing: bytes.span)
                // Of no bytes it is a sequence of no values.
                guard !values.isEmpty else { throw WireError.truncated }
                return String(describing: values)
            }
        }
    }

    private static let binding: [UInt8] = {
        var writer = STUNWriter(.bindingRequest, transactionID: STUNTransactionID(high: 1, low: 2))
        writer.appendUsername("evtj:h6vY")
        return writer.sealed()
    }()

    private static let datagrams: [Format] = [
        Format("STUN", binding, [(2, 2), (22, 2)]) { bytes in
            String(describing: try STUNMessage(parsing: bytes.span))
        },
        Format(
            "the opening of a data channel",
            DataChannelControl.open(DataChannelOpen(label: "chat", subprotocol: "json")).bytes,
            [(8, 2), (10, 2)]
        ) { bytes in String(describing: try DataChannelControl(parsing: bytes.span)) },
        // Two contributing sources, and an extension of two words.
        Format(
            "RTP", hexBytes("92600001 00000002 00000003 00000004 00000005 bede0002 10aa0000 00000000"),
            [(22, 2)]
        ) { bytes in String(describing: try RTPHeader(parsing: bytes.span)) },
        Format(
            "RTP with padding", hexBytes("a0600001 00000002 00000003 aabbccdd 00000004"), [(19, 1)],
            refusesPrefixes: false
        ) { bytes in String(describing: try RTPHeader(parsing: bytes.span)) },
    ]

    private static let report = ReportBlock(
        ssrc: 7, fractionLost: 1, cumulativeLost: 2, highestSequenceNumber: 3, jitter: 4, lastSenderReport: 5,
        delaySinceLastSenderReport: 6)

    private static let metrics: [CongestionControlFeedback.Metric] = [
        .init(offset: 1), .missing, .init(offset: 2),
    ]

    private static let delay = ExtendedReport.DelaySinceLast(ssrc: 2, lastReceiverReference: 3, delay: 4)

    private static let reports: [Format] = [
        .rtcp("a receiver report", .receiverReport(ReceiverReport(ssrc: 1, reports: [report])), []),
        .rtcp(
            "a source description",
            .sourceDescription(SourceDescription(chunks: [.init(ssrc: 1, canonicalName: "abc")])), [(9, 1)]),
        .rtcp("a goodbye", .bye(Goodbye(ssrcs: [1], reason: "so long")), [(8, 1)]),
        .rtcp(
            "an estimate",
            .receiverEstimatedMaximumBitrate(
                ReceiverEstimatedMaximumBitrate(senderSSRC: 1, bitrate: 1_000, ssrcs: [2, 3])), [(16, 1)]),
        .rtcp(
            "an extended report",
            .extendedReport(ExtendedReport(ssrc: 1, blocks: [.delaySinceLastReceiverReport([delay])])),
            [(10, 2)]),
        .rtcp(
            "congestion control feedback",
            .congestionControlFeedback(
                CongestionControlFeedback(
                    senderSSRC: 1, streams: [.init(ssrc: 9, firstSequenceNumber: 7, metrics: metrics)],
                    reportTime: 8)), [(14, 2)]),
    ]

    private static let configurations: [Format] = [
        Format(
            "a record of H.264", hexBytes("0142001e ff e1 0004 6742001e 01 0002 68ce"), [(6, 2), (13, 2)]
        ) { bytes in String(describing: try AVCConfiguration(parsing: bytes.span)) },
        Format(
            "a record of HEVC",
            hexBytes(
                """
                01 01 60000000 900000000000 3c f000 fc fd f8 f8 0000 0f 03
                20 0001 0018 40010c01ffff01600000030090000003000003003c959009
                21 0001 0029 42010101600000030090000003000003003ca0208316595912930bc05a02000003000200
                0003003c10
                22 0001 0006 4401c073c089
                """), [(24, 2), (26, 2), (53, 2), (55, 2)]
        ) { bytes in String(describing: try HEVCConfiguration(parsing: bytes.span)) },
        Format(
            "a temporal unit of AV1", hexBytes("0a03010203 32021020"), [(1, 1), (6, 1)],
            refusesPrefixes: false
        ) { bytes in String(describing: try AV1Units(parsing: bytes.span)) },
        Format("a box of MP4", [0, 0, 0, 24] + Array("moof".utf8), [(0, 4)]) { bytes in
            String(describing: try MP4Box(parsing: bytes.span))
        },
        Format("an element of Matroska", hexBytes("1a45dfa3 4010"), [(4, 2)]) { bytes in
            String(describing: try EBMLElement(parsing: bytes.span))
        },
    ]

    private static let streams: [Format] = [
        .amf("a string of AMF", .string("publish"), 2),
        .amf("an object of AMF", .object([.init("app", .boolean(true))]), 2),
        .amf("an array of AMF", .array([.null, .string("x")]), 4),
        Format(
            "a message of RTMP", hexBytes("04 000000 000004 08 01000000 aabbccdd"), [(4, 3)],
            refusesPrefixes: false
        ) { bytes in
            var reader = RTMPChunkReader(messageLimit: 1_000)
            var messages: [RTMPMessage] = []
            try reader.read(bytes.span) { messages.append($0) }
            return String(describing: messages)
        },
        Format("a frame", [0, 3, 1, 2, 3], [(0, 2)], refusesPrefixes: false) { bytes in
            var reader = FrameReader()
            var frames: [[UInt8]] = []
            try reader.read(bytes[...]) { frame in frames.append((0..<frame.count).map { frame[$0] }) }
            return String(describing: frames)
        },
    ]

    static let formats: [Format] = datagrams + reports + configurations + streams

    @Test(arguments: formats) func `is not read where it is cut off`(format: Format) throws {
        let whole = try format.read(format.bytes)
        for length in 0..<format.bytes.count {
            let prefix = Array(format.bytes.prefix(length))
            if format.refusesPrefixes {
                #expect(throws: WireError.self, "\(length)") { try format.read(prefix) }
            } else {
                #expect((try? format.read(prefix)) != whole, "\(length)")
            }
        }
    }

    @Test(arguments: formats) func `is never read the same with another length`(format: Format) throws {
        let whole = try format.read(format.bytes)
        for (offset, width) in format.lengths {
            for place in offset..<(offset + width) {
                for value in UInt8.min...UInt8.max where value != format.bytes[place] {
                    var wrong = format.bytes
                    wrong[place] = value
                    let found = try? format.read(wrong)
                    #expect(found != whole, "byte \(place) is \(value)")
                }
            }
        }
    }
}
