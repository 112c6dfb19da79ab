/// Which packets of some streams arrived, and when, by their RTP sequence numbers.
///
/// Unlike `TransportFeedback` it needs no header extension in the packets.
/// - Source: RFC 8888 §3.1.
package struct CongestionControlFeedback: Equatable, Sendable {
    /// The report on one packet.
    package struct Metric: Equatable, Sendable {
        /// The 16 bits on the wire: whether the packet arrived, its ECN mark, and how long before the report.
        package let bits: UInt16

        /// Not received yet; all other bits of such a packet are zero.
        package static let missing = Metric(bits: 0)
        /// A longer time than 13 bits can express.
        private static let overRange: UInt16 = 0x1FFE
        /// The time was not measured, or lies after the report's own time.
        private static let unavailable: UInt16 = 0x1FFF

        fileprivate init(bits: UInt16) {
            self.bits = bits
        }

        /// A packet that arrived.
        /// - Parameters:
        ///   - offset: time before the report, in units of 1/1024 s; a value above 13 bits becomes "over range",
        ///     and nil "not available".
        ///   - mark: the two bits of ECN (RFC 3168 §5).
        package init(offset: UInt16?, mark: UInt8 = 0) {
            let time = offset.map { min($0, Self.overRange) } ?? Self.unavailable
            bits = 0x8000 | UInt16(mark & 3) << 13 | time
        }

        /// Whether the packet arrived.
        package var hasArrived: Bool { bits & 0x8000 != 0 }
        /// The two ECN bits with which it arrived (RFC 3168 §5).
        package var mark: UInt8 { UInt8(truncatingIfNeeded: bits >> 13 & 3) }
        /// How long before the report it arrived, in units of 1/1024 s; nil if that is not known, or it did not
        /// arrive.
        package var offset: UInt16? {
            let value = bits & 0x1FFF
            return hasArrived && value < Self.overRange ? value : nil
        }
    }

    /// The report on consecutive packets of one stream.
    package struct Stream: Equatable, Sendable {
        /// The stream that these packets belong to.
        package var ssrc: UInt32
        /// Sequence number of the first packet; the others follow, modulo 65,536.
        package var firstSequenceNumber: UInt16
        /// One for each packet; may be empty.
        package var metrics: [Metric]

        package init(ssrc: UInt32, firstSequenceNumber: UInt16, metrics: [Metric]) {
            self.ssrc = ssrc
            self.firstSequenceNumber = firstSequenceNumber
            self.metrics = metrics
        }
    }

    static let format: UInt8 = 11
    /// Most packets of one stream in a report.
    package static let maximumMetrics = 16_384
    /// Units of a report's time in one unit of a metric's: 1/65,536 s and 1/1024 s.
    package static let ticksPerOffset: Int64 = 64
    /// Units of a report's time in one second.
    package static let ticksPerSecond: Int64 = 65_536

    /// The receiver that reports.
    package var senderSSRC: UInt32
    /// In the order on the wire.
    package var streams: [Stream]
    /// When the report was made: the middle 32 bits of an NTP time, by a clock whose origin need not be that of
    /// NTP; wraps after 18 hours.
    package var reportTime: UInt32

    package init(senderSSRC: UInt32, streams: [Stream], reportTime: UInt32) {
        self.senderSSRC = senderSSRC
        self.streams = streams
        self.reportTime = reportTime
    }

    /// Parses the body after the header; reads no further than `body`, whatever length a stream declares.
    init(_ body: Span<UInt8>) throws(WireError) {
        senderSSRC = try body.uint32(at: 0)
        // Unlike in other feedback there is no media SSRC: the streams follow immediately.
        let end = body.count &- 4
        reportTime = try body.uint32(at: max(end, 4))
        streams = []
        var offset = 4
        while offset < end {
            guard offset &+ 8 <= end else { throw .truncated }
            let ssrc = try body.uint32(at: offset)
            let first = try body.uint16(at: offset &+ 4)
            let count = try Int(body.uint16(at: offset &+ 6))
            guard count <= Self.maximumMetrics else { throw .invalid(.congestionControlCount) }
            offset &+= 8
            // An odd number of metrics is padded to a whole word.
            let next = offset &+ (count &+ 1) / 2 &* 4
            guard next <= end else { throw .truncated }
            var metrics: [Metric] = []
            metrics.reserveCapacity(count)
            for index in 0..<count {
                let bits = try body.uint16(at: offset &+ 2 &* index)
                // The other bits of a packet that has not arrived must be ignored.
                metrics.append(bits & 0x8000 == 0 ? .missing : Metric(bits: bits))
            }
            streams.append(Stream(ssrc: ssrc, firstSequenceNumber: first, metrics: metrics))
            offset = next
        }
    }

    /// Appends the RTCP packet; of a stream with more than `maximumMetrics` only the first ones.
    package func append(to bytes: inout [UInt8]) {
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.transportSpecificFeedback, countOrFormat: Self.format
        ) { bytes in
            bytes.append(bigEndian: senderSSRC)
            for stream in streams {
                let metrics = stream.metrics.prefix(Self.maximumMetrics)
                bytes.append(bigEndian: stream.ssrc)
                bytes.append(bigEndian: stream.firstSequenceNumber)
                bytes.append(bigEndian: UInt16(truncatingIfNeeded: metrics.count))
                for metric in metrics { bytes.append(bigEndian: metric.bits) }
                if !metrics.count.isMultiple(of: 2) { bytes.append(bigEndian: UInt16(0)) }
            }
            bytes.append(bigEndian: reportTime)
        }
    }
}

extension WireError.Field {
    /// More packets of one stream than a report may contain.
    package static var congestionControlCount: Self { .init("rtcp.ccfb.count") }
}
