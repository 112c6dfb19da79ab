/// Which packets of some streams arrived, and when, by their own sequence numbers.
///
/// Nothing has to be written into packets for it, other than for `TransportFeedback`.
/// - Source: RFC 8888 §3.1.
package struct CongestionControlFeedback: Equatable, Sendable {
    /// What is said of one packet.
    package struct Metric: Equatable, Sendable {
        /// The 16 bits as they are sent: whether it came, its ECN mark, and how long before the report.
        package let bits: UInt16

        /// Not received yet; nothing else is said of such a packet.
        package static let missing = Metric(bits: 0)
        /// Longer ago than the 13 bits can say.
        private static let overRange: UInt16 = 0x1FFE
        /// Not measured, or later than the report's own time.
        private static let unavailable: UInt16 = 0x1FFF

        fileprivate init(bits: UInt16) {
            self.bits = bits
        }

        /// A packet that came.
        /// - Parameters:
        ///   - offset: how long before the report, in units of 1/1024 s; what is more than 13 bits can say becomes
        ///     "over range", and nil "not known".
        ///   - mark: the two bits of ECN (RFC 3168 §5).
        package init(offset: UInt16?, mark: UInt8 = 0) {
            let time = offset.map { min($0, Self.overRange) } ?? Self.unavailable
            bits = 0x8000 | UInt16(mark & 3) << 13 | time
        }

        /// Whether the packet came.
        package var hasArrived: Bool { bits & 0x8000 != 0 }
        /// The two bits of ECN with which it came (RFC 3168 §5).
        package var mark: UInt8 { UInt8(truncatingIfNeeded: bits >> 13 & 3) }
        /// How long before the report it came, in units of 1/1024 s; nil where that is not known, or nothing came.
        package var offset: UInt16? {
            let value = bits & 0x1FFF
            return hasArrived && value < Self.overRange ? value : nil
        }
    }

    /// What is said of packets of one stream that follow each other.
    package struct Stream: Equatable, Sendable {
        package var ssrc: UInt32
        /// Of the first packet; the others follow, modulo 65,536.
        package var firstSequenceNumber: UInt16
        /// One for each packet; none where nothing is said of any.
        package var metrics: [Metric]

        package init(ssrc: UInt32, firstSequenceNumber: UInt16, metrics: [Metric]) {
            self.ssrc = ssrc
            self.firstSequenceNumber = firstSequenceNumber
            self.metrics = metrics
        }
    }

    static let format: UInt8 = 11
    /// Packets of one stream that a report may speak of.
    package static let maximumMetrics = 16_384
    /// Units of a report's time in one unit of a metric's: 1/65,536 s and 1/1024 s.
    package static let ticksPerOffset: Int64 = 64
    /// In one second of a report's time.
    package static let ticksPerSecond: Int64 = 65_536

    /// The receiver that reports.
    package var senderSSRC: UInt32
    /// In the order in which they are sent.
    package var streams: [Stream]
    /// When the report was made: the middle 32 bits of an NTP time, by a clock whose origin need not be NTP's; wraps
    /// after 18 hours.
    package var reportTime: UInt32

    package init(senderSSRC: UInt32, streams: [Stream], reportTime: UInt32) {
        self.senderSSRC = senderSSRC
        self.streams = streams
        self.reportTime = reportTime
    }

    /// Reads no more than the bytes that are there, whatever a stream says of its length.
    init(_ body: Span<UInt8>) throws(WireError) {
        senderSSRC = try body.uint32(at: 0)
        // There is no media SSRC, which all other feedback has: streams begin at once.
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
            // An odd one is padded to a whole word.
            let next = offset &+ (count &+ 1) / 2 &* 4
            guard next <= end else { throw .truncated }
            var metrics: [Metric] = []
            metrics.reserveCapacity(count)
            for index in 0..<count {
                let bits = try body.uint16(at: offset &+ 2 &* index)
                // Of one that has not come the rest has to be ignored.
                metrics.append(bits & 0x8000 == 0 ? .missing : Metric(bits: bits))
            }
            streams.append(Stream(ssrc: ssrc, firstSequenceNumber: first, metrics: metrics))
            offset = next
        }
    }

    /// - Precondition: no stream has more than `maximumMetrics`; what is beyond is left out.
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
    /// More packets of one stream than a report may speak of.
    package static var congestionControlCount: Self { .init("rtcp.ccfb.count") }
}
