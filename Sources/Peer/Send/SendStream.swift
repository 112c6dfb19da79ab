import Base
import Wire

/// What the server knows of one SSRC it sends to one viewer: how much left, on which time line, how it arrives.
///
/// Holds no packets. An RTX stream has a `SendStream` of its own.
/// - Source: RFC 3550 §6.4.1 (sender reports and what receivers answer).
package struct SendStream: Sendable {
    /// A capture time further than this before the packet leaves is a broken mapping, and is not used.
    ///
    /// In nanoseconds: this runs for every packet.
    private static let longestDelay: Int64 = 10_000_000_000

    /// What the viewer last said of this stream.
    package struct Reception: Equatable, Sendable {
        /// Of the packets expected between its last two reports, in 1/256.
        package var fractionLost: UInt8
        /// Since the viewer began; duplicates can make it negative.
        package var cumulativeLost: Int32
        /// With the count of wraps in the upper 16 bits.
        package var highestSequenceNumber: UInt32
        /// Of arrivals at the viewer.
        package var jitter: Duration
        /// When the report came.
        package var at: MonotonicTime

        /// What it says of the time since an earlier one; nothing where it makes no sense.
        package func interval(since earlier: Reception) -> LossResponse.Interval {
            let expected = Int32(bitPattern: highestSequenceNumber &- earlier.highestSequenceNumber)
            let lost = cumulativeLost &- earlier.cumulativeLost
            guard expected > 0, expected < 1 << 20 else { return LossResponse.Interval() }
            return LossResponse.Interval(expected: Int(expected), lost: Int(min(max(lost, 0), expected)))
        }
    }

    /// Of the slot, for its life.
    package let ssrc: UInt32
    /// In ticks a second.
    package let clockRate: UInt32
    /// Without retransmissions.
    package private(set) var packetCount: UInt64 = 0
    /// Of payload, without headers and padding.
    package private(set) var octetCount: UInt64 = 0
    /// Nil before the viewer's first report.
    package private(set) var reception: Reception?

    /// One instant on both clocks; sender reports extrapolate from it.
    private var anchor: (timestamp: UInt32, time: MonotonicTime)?

    package init(ssrc: UInt32, clockRate: UInt32) {
        self.ssrc = ssrc
        self.clockRate = clockRate
    }

    /// Counts a packet that left; call it for each, it is cheap.
    /// - Parameters:
    ///   - timestamp: as the viewer sees it.
    ///   - captured: when its media was captured, by the publisher's sender reports (`SourceClock`); nil if that
    ///     is not known. For lip sync give it for audio and video of a source, or for neither.
    package mutating func sent(
        payloadSize: Int, timestamp: UInt32, captured: MonotonicTime? = nil, at now: MonotonicTime
    ) {
        sent(packets: 1, payloadSize: payloadSize)
        mark(timestamp: timestamp, captured: captured, at: now)
    }

    /// Counts packets that left together; `mark` has to be called for each.
    package mutating func sent(packets: Int, payloadSize: Int) {
        packetCount &+= UInt64(clamping: packets)
        octetCount &+= UInt64(clamping: payloadSize)
    }

    /// Notes where on the time line a packet stands.
    package mutating func mark(timestamp: UInt32, captured: MonotonicTime?, at now: MonotonicTime) {
        if let anchor, !Self.isNewer(timestamp, than: anchor, at: now) { return }
        guard let captured, captured <= now, now.nanoseconds(since: captured) <= Self.longestDelay else {
            anchor = (timestamp, now)
            return
        }
        anchor = (timestamp, captured)
    }

    /// The time line is another one from now on: reports measure from this instant, before anything has left.
    package mutating func begin(timestamp: UInt32, captured: MonotonicTime, at now: MonotonicTime) {
        let isCredible = captured <= now && now.nanoseconds(since: captured) <= Self.longestDelay
        anchor = (timestamp, isCredible ? captured : now)
    }

    /// Whether to measure from this packet; a picture that comes out of order does not move the time line.
    private static func isNewer(
        _ timestamp: UInt32, than anchor: (timestamp: UInt32, time: MonotonicTime), at now: MonotonicTime
    ) -> Bool {
        let step = Int32(bitPattern: timestamp &- anchor.timestamp)
        return step > 0 || step < 0 && now.nanoseconds(since: anchor.time) > longestDelay
    }

    /// The report to send now; nil before the first packet, when there is no time line to speak of.
    package func senderReport(at now: MonotonicTime, clock: WallClock) -> SenderReport? {
        guard let anchor else { return nil }
        let elapsed = MediaTicks.ticks(nanoseconds: now.nanoseconds(since: anchor.time), clockRate: clockRate)
        return SenderReport(
            ssrc: ssrc, ntpTime: clock.ntp(at: now),
            rtpTimestamp: anchor.timestamp &+ UInt32(truncatingIfNeeded: elapsed),
            packetCount: UInt32(truncatingIfNeeded: packetCount),
            octetCount: UInt32(truncatingIfNeeded: octetCount))
    }

    /// Takes in what the viewer says of this stream.
    /// - Returns: the round-trip time it implies, for the session's `RTTEstimator`; nil if it echoes no report.
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
