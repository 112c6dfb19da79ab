/// Extended reports, with which a receiver that sends no media can measure the round-trip time.
/// - Source: RFC 3611 §2, §3, §4.4, §4.5.
package struct ExtendedReport: Equatable, Sendable {
    /// The answer to one receiver reference time.
    package struct DelaySinceLast: Equatable, Sendable {
        /// The receiver that is answered.
        package var ssrc: UInt32
        /// The middle 32 bits of its reference time.
        package var lastReceiverReference: UInt32
        /// Time since that report arrived, in units of 1/65,536 s.
        package var delay: UInt32

        package init(ssrc: UInt32, lastReceiverReference: UInt32, delay: UInt32) {
            self.ssrc = ssrc
            self.lastReceiverReference = lastReceiverReference
            self.delay = delay
        }
    }

    /// The report blocks that are used here (RFC 3611 §4).
    package enum Block: Equatable, Sendable {
        /// RRTR: NTP time, 32.32 fixed point seconds.
        case receiverReferenceTime(UInt64)
        /// DLRR: at most 64 entries are read or written.
        case delaySinceLastReceiverReport([DelaySinceLast])
        /// A block of another type; it is never written.
        case unknown(type: UInt8)
    }

    /// Most blocks read from one packet; the rest is ignored.
    package static let maximumBlocks = 32
    private static let maximumDelays = 64

    /// The sender of the report.
    package var ssrc: UInt32
    /// At most `maximumBlocks` are sent.
    package var blocks: [Block]

    package init(ssrc: UInt32, blocks: [Block]) {
        self.ssrc = ssrc
        self.blocks = blocks
    }

    init(_ body: Span<UInt8>) throws(WireError) {
        ssrc = try body.uint32(at: 0)
        blocks = []
        var offset = 4
        while offset < body.count, blocks.count < Self.maximumBlocks {
            let type = try body.uint8(at: offset)
            let start = offset &+ 4
            let end = try start &+ Int(body.uint16(at: offset &+ 2)) &* 4
            try body.require(end)
            switch type {
            case 4:
                guard end &- start == 8 else { throw .invalid(.rtcpExtendedReportBlock) }
                blocks.append(.receiverReferenceTime(try body.uint64(at: start)))
            case 5:
                blocks.append(.delaySinceLastReceiverReport(try Self.delays(body, start..<end)))
            default:
                blocks.append(.unknown(type: type))
            }
            offset = end
        }
    }

    private static func delays(
        _ body: Span<UInt8>, _ range: Range<Int>
    ) throws(WireError) -> [DelaySinceLast] {
        guard range.count % 12 == 0 else { throw .invalid(.rtcpExtendedReportBlock) }
        var delays: [DelaySinceLast] = []
        var offset = range.lowerBound
        while offset < range.upperBound, delays.count < maximumDelays {
            delays.append(
                DelaySinceLast(
                    ssrc: try body.uint32(at: offset),
                    lastReceiverReference: try body.uint32(at: offset &+ 4),
                    delay: try body.uint32(at: offset &+ 8)))
            offset &+= 12
        }
        return delays
    }

    /// Appends the RTCP packet, with at most `maximumBlocks` blocks.
    package func append(to bytes: inout [UInt8]) {
        RTCPFrame.append(to: &bytes, type: RTCPFrame.extendedReport, countOrFormat: 0) { bytes in
            bytes.append(bigEndian: ssrc)
            for block in blocks.prefix(Self.maximumBlocks) {
                switch block {
                case .receiverReferenceTime(let time):
                    bytes.append(bigEndian: UInt32(0x0400_0002))
                    bytes.append(bigEndian: time)
                case .delaySinceLastReceiverReport(let delays):
                    let sent = delays.prefix(Self.maximumDelays)
                    bytes.append(bigEndian: 0x0500_0000 | UInt32(truncatingIfNeeded: sent.count &* 3))
                    for delay in sent {
                        bytes.append(bigEndian: delay.ssrc)
                        bytes.append(bigEndian: delay.lastReceiverReference)
                        bytes.append(bigEndian: delay.delay)
                    }
                case .unknown: break
                }
            }
        }
    }
}

extension WireError.Field {
    /// A report block whose length does not fit its type.
    package static var rtcpExtendedReportBlock: Self { .init("rtcp.xr.block") }
}
