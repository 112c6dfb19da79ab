import Base
import Wire

/// The state of one SSRC sent to one viewer: how much was sent, on which time line, and how it arrives.
///
/// Holds no packets. An RTX stream has its own `SendStream`.
/// - Source: RFC 3550 §6.4.1 (sender reports and what receivers answer).
package struct SendStream: Sendable {
    /// Nanoseconds between capture and sending above which the mapping of clocks is wrong, and is not used.
    ///
    /// An integer and not a `Duration`, because the comparison runs for every packet.
    private static let longestDelay: Int64 = 10_000_000_000

    /// The latest report block of the viewer on this stream.
    package struct Reception: Equatable, Sendable {
        /// Share of the packets expected between its last two reports, in 1/256.
        package var fractionLost: UInt8
        /// Packets lost since the viewer began; duplicates can make it negative.
        package var cumulativeLost: Int32
        /// Extended: with the number of wraps in the upper 16 bits.
        package var highestSequenceNumber: UInt32
        /// Variation of arrival times at the viewer.
        package var jitter: Duration
        /// When the report arrived.
        package var at: MonotonicTime

        /// The loss between an earlier report and this one; empty if the two do not fit together.
        package func interval(since earlier: Reception) -> LossResponse.Interval {
            let expected = Int32(bitPattern: highestSequenceNumber &- earlier.highestSequenceNumber)
            let lost = cumulativeLost &- earlier.cumulativeLost
            guard expected > 0, expected < 1 << 20 else { return LossResponse.Interval() }
            return LossResponse.Interval(expected: Int(expected), lost: Int(min(max(lost, 0), expected)))
        }
    }

    /// The slot's SSRC, the same for its life.
    package let ssrc: UInt32
    /// In ticks a second.
    package let clockRate: UInt32
    /// Packets sent, without retransmissions.
    package private(set) var packetCount: UInt64 = 0
    /// Bytes of payload sent, without headers and padding.
    package private(set) var octetCount: UInt64 = 0
    /// Nil before the viewer's first report.
    package private(set) var reception: Reception?

    /// One instant on both clocks, from which sender reports extrapolate.
    private var anchor: (timestamp: UInt32, time: MonotonicTime)?

    package init(ssrc: UInt32, clockRate: UInt32) {
        self.ssrc = ssrc
        self.clockRate = clockRate
    }

    /// Counts a packet that was sent; must be called for each.
    /// - Parameters:
    ///   - timestamp: as the viewer sees it.
    ///   - captured: when its media was captured, from the publisher's sender reports (`SourceClock`); nil if not
    ///     known. For lip sync it must be given for both audio and video of a source, or for neither.
    package mutating func sent(
        payloadSize: Int, timestamp: UInt32, captured: MonotonicTime? = nil, at now: MonotonicTime
    ) {
        sent(packets: 1, payloadSize: payloadSize)
        mark(timestamp: timestamp, captured: captured, at: now)
    }

    /// Counts packets that were sent together; `mark` must be called for each.
    package mutating func sent(packets: Int, payloadSize: Int) {
        packetCount &+= UInt64(clamping: packets)
        octetCount &+= UInt64(clamping: payloadSize)
    }

    /// Relates a packet's timestamp to the clock.
    package mutating func mark(timestamp: UInt32, captured: MonotonicTime?, at now: MonotonicTime) {
        if let anchor, !Self.isNewer(timestamp, than: anchor, at: now) { return }
        guard let captured, captured <= now, now.nanoseconds(since: captured) <= Self.longestDelay else {
            anchor = (timestamp, now)
            return
        }
        anchor = (timestamp, captured)
    }

    /// Begins a new time line at this instant, before any packet on it is sent; reports refer to it.
    package mutating func begin(timestamp: UInt32, captured: MonotonicTime, at now: MonotonicTime) {
        let isCredible = captured <= now && now.nanoseconds(since: captured) <= Self.longestDelay
        anchor = (timestamp, isCredible ? captured : now)
    }

    /// Whether to use this packet as the anchor; a picture that is out of order does not move the time line.
    private static func isNewer(
        _ timestamp: UInt32, than anchor: (timestamp: UInt32, time: MonotonicTime), at now: MonotonicTime
    ) -> Bool {
        let step = Int32(bitPattern: timestamp &- anchor.timestamp)
        return step > 0 || step < 0 && now.nanoseconds(since: anchor.time) > longestDelay
    }

    /// The report to send now; nil before the first packet, when there is no time line.
    package func senderReport(at now: MonotonicTime, clock: WallClock) -> SenderReport? {
        guard let anchor else { return nil }
        let elapsed = MediaTicks.ticks(nanoseconds: now.nanoseconds(since: anchor.time), clockRate: clockRate)
        return SenderReport(
            ssrc: ssrc, ntpTime: clock.ntp(at: now),
            rtpTimestamp: anchor.timestamp &+ UInt32(truncatingIfNeeded: elapsed),
            packetCount: UInt32(truncatingIfNeeded: packetCount),
            octetCount: UInt32(truncatingIfNeeded: octetCount))
    }

    /// Processes the viewer's report block on this stream.
    /// - Returns: the round-trip time that it implies, for the session's `RTTEstimator`; nil if it echoes no
    ///   report.
    package mutating func receive(_ block: ReportBlock, at now: MonotonicTime, clock: WallClock) -> Duration?
    {
        guard block.ssrc == ssrc else { return nil }
        let jitter = MediaTicks.nanoseconds(ticks: Int64(block.jitter), clockRate: clockRate)
        reception = Reception(
            fractionLost: block.fractionLost, cumulativeLost: block.cumulativeLost,
            highestSequenceNumber: block.highestSequenceNumber, jitter: .nanoseconds(jitter), at: now)
        return clock.roundTripTime(
            echoed: block.lastSenderReport, delay: block.delaySinceLastSenderReport, at: now)
    }
}
