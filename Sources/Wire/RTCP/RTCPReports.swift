/// A receiver's report on one source.
/// - Source: RFC 3550 §6.4.1.
package struct ReportBlock: Equatable, Sendable {
    static let length = 24
    /// The most that the five bits of a count can express.
    package static let maximumPerPacket = 31

    /// The source that the block is about.
    package var ssrc: UInt32
    /// Share of the packets expected since the last report, in 1/256.
    package var fractionLost: UInt8
    /// 24 bits, signed: duplicates can make it negative.
    package var cumulativeLost: Int32
    /// The highest sequence number received, with the number of wraps in the upper 16 bits.
    package var highestSequenceNumber: UInt32
    /// Variation of packet spacing, in ticks of the codec clock.
    package var jitter: UInt32
    /// The middle 32 bits of the last sender report's NTP time; 0 if there was none.
    package var lastSenderReport: UInt32
    /// Time since that sender report arrived, in units of 1/65,536 s.
    package var delaySinceLastSenderReport: UInt32

    package init(
        ssrc: UInt32, fractionLost: UInt8, cumulativeLost: Int32, highestSequenceNumber: UInt32,
        jitter: UInt32, lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
    ) {
        self.ssrc = ssrc
        self.fractionLost = fractionLost
        self.cumulativeLost = cumulativeLost
        self.highestSequenceNumber = highestSequenceNumber
        self.jitter = jitter
        self.lastSenderReport = lastSenderReport
        self.delaySinceLastSenderReport = delaySinceLastSenderReport
    }

    fileprivate init(_ body: Span<UInt8>, at offset: Int) throws(WireError) {
        ssrc = try body.uint32(at: offset)
        let loss = try body.uint32(at: offset &+ 4)
        fractionLost = UInt8(truncatingIfNeeded: loss >> 24)
        cumulativeLost = Int32(bitPattern: loss << 8) >> 8
        highestSequenceNumber = try body.uint32(at: offset &+ 8)
        jitter = try body.uint32(at: offset &+ 12)
        lastSenderReport = try body.uint32(at: offset &+ 16)
        delaySinceLastSenderReport = try body.uint32(at: offset &+ 20)
    }

    fileprivate static func parse(
        _ body: Span<UInt8>, at offset: Int, count: Int
    ) throws(WireError) -> [ReportBlock] {
        try body.require(offset &+ count &* length)
        var reports: [ReportBlock] = []
        reports.reserveCapacity(count)
        for index in 0..<count {
            reports.append(try ReportBlock(body, at: offset &+ index &* length))
        }
        return reports
    }

    fileprivate func append(to bytes: inout [UInt8]) {
        bytes.append(bigEndian: ssrc)
        let lost = UInt32(bitPattern: min(max(cumulativeLost, -0x80_0000), 0x7F_FFFF)) & 0xFF_FFFF
        bytes.append(bigEndian: UInt32(fractionLost) << 24 | lost)
        bytes.append(bigEndian: highestSequenceNumber)
        bytes.append(bigEndian: jitter)
        bytes.append(bigEndian: lastSenderReport)
        bytes.append(bigEndian: delaySinceLastSenderReport)
    }
}

/// A sender's report on its stream: the same instant on two clocks, and how much it has sent.
/// - Source: RFC 3550 §6.4.1.
package struct SenderReport: Equatable, Sendable {
    /// The sender.
    package var ssrc: UInt32
    /// Seconds since 1900, 32.32 fixed point.
    package var ntpTime: UInt64
    /// The same instant in ticks of the codec clock.
    package var rtpTimestamp: UInt32
    /// Packets sent since the beginning; wraps.
    package var packetCount: UInt32
    /// Bytes of payload sent, without headers and padding; wraps.
    package var octetCount: UInt32
    /// Reception reports on other sources; at most 31 are sent.
    package var reports: [ReportBlock]

    package init(
        ssrc: UInt32, ntpTime: UInt64, rtpTimestamp: UInt32, packetCount: UInt32, octetCount: UInt32,
        reports: [ReportBlock] = []
    ) {
        self.ssrc = ssrc
        self.ntpTime = ntpTime
        self.rtpTimestamp = rtpTimestamp
        self.packetCount = packetCount
        self.octetCount = octetCount
        self.reports = reports
    }

    /// Whether the report has no content: OBS begins with one whose RTP timestamp means "not yet".
    package var isPlaceholder: Bool { rtpTimestamp == .max && packetCount == 0 }

    init(_ body: Span<UInt8>, count: Int) throws(WireError) {
        ssrc = try body.uint32(at: 0)
        ntpTime = try body.uint64(at: 4)
        rtpTimestamp = try body.uint32(at: 12)
        packetCount = try body.uint32(at: 16)
        octetCount = try body.uint32(at: 20)
        reports = try ReportBlock.parse(body, at: 24, count: count)
    }

    /// Appends the RTCP packet.
    package func append(to bytes: inout [UInt8]) {
        let sent = reports.prefix(ReportBlock.maximumPerPacket)
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.senderReport, countOrFormat: UInt8(truncatingIfNeeded: sent.count)
        ) { bytes in
            bytes.append(bigEndian: ssrc)
            bytes.append(bigEndian: ntpTime)
            bytes.append(bigEndian: rtpTimestamp)
            bytes.append(bigEndian: packetCount)
            bytes.append(bigEndian: octetCount)
            for report in sent { report.append(to: &bytes) }
        }
    }
}

/// The report of a participant that sends no media, on what it receives.
/// - Source: RFC 3550 §6.4.2.
package struct ReceiverReport: Equatable, Sendable {
    /// The receiver.
    package var ssrc: UInt32
    /// Reports on each source; at most 31 are sent.
    package var reports: [ReportBlock]

    package init(ssrc: UInt32, reports: [ReportBlock]) {
        self.ssrc = ssrc
        self.reports = reports
    }

    init(_ body: Span<UInt8>, count: Int) throws(WireError) {
        ssrc = try body.uint32(at: 0)
        reports = try ReportBlock.parse(body, at: 4, count: count)
    }

    /// Appends the RTCP packet.
    package func append(to bytes: inout [UInt8]) {
        let sent = reports.prefix(ReportBlock.maximumPerPacket)
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.receiverReport, countOrFormat: UInt8(truncatingIfNeeded: sent.count)
        ) { bytes in
            bytes.append(bigEndian: ssrc)
            for report in sent { report.append(to: &bytes) }
        }
    }
}
