import Base
import Wire

/// Turns one source after another into one continuous RTP stream.
///
/// The receiver sees one SSRC whose sequence numbers have no gap but those of the source, and whose time stamps
/// go forward by the real time that passed, however often the source changes. A few earlier segments are kept, so
/// that a retransmission asked for after a switch is still found.
/// - Source: RFC 3550 §5.1; RFC 3711 §3.3.1 (a jump of 2^15 or more would desynchronise the roll-over counter).
package struct RTPTimeline<Source: AnyObject> {
    /// A run of packets from one source.
    package struct Segment {
        /// Where the packets come from.
        package let source: Source
        /// The first packet of the source that belongs here; earlier ones are not sent.
        package let firstSourceSequence: Int64
        /// Added to the source's extended sequence number.
        package let sequenceOffset: Int64
        /// Added to the source's time stamp, wrapping.
        package let timestampOffset: UInt32
        /// Added to the picture numbers of the payload.
        package let pictures: PictureOffsets

        package func outgoing(_ sequence: Int64) -> Int64? {
            sequence >= firstSourceSequence ? sequence &+ sequenceOffset : nil
        }
    }

    private static var segmentLimit: Int { 6 }

    /// Ticks a second.
    package let clockRate: Int64
    /// Oldest first; the last one is what is being sent.
    package private(set) var segments: [Segment] = []
    /// What the next packet of the current source gets.
    package private(set) var nextSequence: Int64
    private var lastTimestamp: UInt32
    private var lastSent: MonotonicTime?

    /// - Parameter random: the first sequence number is below 2^15, so that loss of the first packets cannot make
    ///   the receiver guess a wrong roll-over counter (RFC 3711 §3.3.1); the first time stamp is arbitrary.
    package init(clockRate: Int64, using random: inout some RandomNumberGenerator) {
        self.clockRate = clockRate
        nextSequence = Int64.random(in: 1...0x7FFF, using: &random)
        lastTimestamp = UInt32.random(in: 0...UInt32.max, using: &random)
    }

    package var current: Segment? { segments.last }

    /// Starts a new segment with the source's packet `sequence`, which is the next to be sent.
    package mutating func begin(
        _ source: Source, at sequence: Int64, timestamp: UInt32, pictures: PictureOffsets, now: MonotonicTime
    ) {
        let outgoing = lastTimestamp &+ elapsedTicks(to: now)
        if segments.count == Self.segmentLimit { segments.removeFirst() }
        segments.append(
            Segment(
                source: source, firstSourceSequence: sequence, sequenceOffset: nextSequence &- sequence,
                timestampOffset: outgoing &- timestamp, pictures: pictures))
    }

    /// Notes that a packet left, in the numbers of the receiver.
    /// - Returns: whether it is the newest one, not one that came late.
    @discardableResult
    package mutating func sent(_ sequence: Int64, timestamp: UInt32, at now: MonotonicTime) -> Bool {
        let isNewest = sequence >= nextSequence
        if isNewest { nextSequence = sequence &+ 1 }
        if lastSent == nil || Int32(bitPattern: timestamp &- lastTimestamp) >= 0 {
            lastTimestamp = timestamp
            lastSent = now
        }
        return isNewest
    }

    /// The segment that the receiver's 16-bit `sequenceNumber` was sent in, and its number at the source.
    package func origin(of sequenceNumber: UInt16) -> (segment: Segment, sequence: Int64, outgoing: Int64)? {
        let behind = UInt16(truncatingIfNeeded: nextSequence &- 1) &- sequenceNumber
        guard behind < 0x8000 else { return nil }
        let outgoing = nextSequence &- 1 &- Int64(behind)
        for segment in segments.reversed() {
            let sequence = outgoing &- segment.sequenceOffset
            if sequence >= segment.firstSourceSequence { return (segment, sequence, outgoing) }
        }
        return nil
    }

    /// Forgets the earlier segments, and with them their sources.
    package mutating func forgetHistory() {
        segments.removeFirst(max(segments.count - 1, 0))
    }

    /// Stops sending; the numbers stay, for the source that comes next.
    package mutating func end() {
        segments.removeAll()
    }

    /// Real time since the last packet in ticks, at least one, so that time never stands still or goes back.
    private func elapsedTicks(to now: MonotonicTime) -> UInt32 {
        guard let lastSent else { return 1 }
        let elapsed = max(now.nanoseconds(since: lastSent), 0)
        let (seconds, rest) = elapsed.quotientAndRemainder(dividingBy: 1_000_000_000)
        let ticks = seconds &* clockRate &+ rest &* clockRate / 1_000_000_000
        return UInt32(truncatingIfNeeded: max(ticks, 1))
    }
}
