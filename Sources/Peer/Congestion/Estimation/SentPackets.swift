import Base
import Wire

/// Remembers what was sent to a client that reports the arrival of each packet.
///
/// One per session: transport-wide numbers run over media, RTX and probes together. If the client reports packets
/// by RTP sequence numbers instead, the sender remembers the value of `count` for each. Memory is bounded: the
/// oldest packets are dropped first, and feedback on them is ignored.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §2; RFC 8888 §3.
package struct SentPackets: Sendable {
    /// Headers of IPv4 and UDP in bytes, which a link carries as well.
    package static let overhead = 28
    /// Initial number of remembered packets: 4 Mbit/s for half a second.
    private static let initialCapacity = 256
    /// Most packets remembered: feedback on older ones comes too late to be of use.
    package static let maximumCapacity = 2_048

    /// `repeated`: reported lost, sent again under its number, and not reported to have arrived since.
    private enum Fate: UInt8 { case unknown, lost, repeated, arrived }

    /// Eight bytes, because there is one for each packet in flight.
    private struct Entry {
        /// Microseconds since the first packet; wraps.
        var sent: UInt32 = 0
        var size: UInt16 = 0
        var probe: UInt8 = 0
        var fate = Fate.arrived
    }

    /// Each at its number modulo the count, which is a power of two; allocated by the first packet.
    private var entries: [Entry] = []
    /// Packets sent; the low 16 bits are the number of the next one.
    package private(set) var count: Int64 = 0
    /// The oldest packet that was never reported.
    private var firstUnknown: Int64 = 0
    private var origin = MonotonicTime.zero
    /// Whether feedback ever arrived; otherwise there is no use in remembering more.
    package private(set) var hasFeedback = false
    /// Whether a packet that was sent again under its number was ever reported to have arrived.
    ///
    /// Some receivers report nothing of packets older than their last feedback.
    package private(set) var tellsOfRepeats = false
    /// Whether a feedback is missing before the latest one; it may have reported arrivals.
    package private(set) var missesFeedback = false
    /// The number of the latest feedback.
    private var lastFeedback: UInt8?

    package init() {}

    /// The transport-wide number of the packet sent next.
    package var nextNumber: UInt16 { UInt16(truncatingIfNeeded: count) }

    /// Records a packet that leaves.
    /// - Parameters:
    ///   - size: in bytes, from the RTP header to the authentication tag.
    ///   - probe: the number of the probe that it belongs to; 0 for none.
    /// - Returns: its transport-wide sequence number.
    @discardableResult
    package mutating func add(size: Int, probe: UInt8 = 0, at now: MonotonicTime) -> UInt16 {
        if count &- firstUnknown >= Int64(entries.count) { makeRoom(at: now) }
        let entry = Entry(
            sent: UInt32(truncatingIfNeeded: now.nanoseconds(since: origin) / 1_000),
            size: UInt16(clamping: size &+ Self.overhead), probe: probe, fate: .unknown)
        entries[slot(of: count)] = entry
        count &+= 1
        return UInt16(truncatingIfNeeded: count &- 1)
    }

    /// Doubles the memory, or drops the oldest packet at the maximum or while no feedback arrives.
    private mutating func makeRoom(at now: MonotonicTime) {
        guard !entries.isEmpty else {
            entries = Array(repeating: Entry(), count: Self.initialCapacity)
            origin = now
            return
        }
        guard hasFeedback, entries.count < Self.maximumCapacity else { return firstUnknown &+= 1 }
        var larger = Array(repeating: Entry(), count: entries.count * 2)
        for number in (count - Int64(entries.count))..<count {
            larger[Int(truncatingIfNeeded: number & Int64(larger.count - 1))] = entries[slot(of: number)]
        }
        entries = larger
    }

    /// Returns the outcomes in a feedback, in the order in which the packets left.
    ///
    /// A packet that was reported lost and arrives after all appears once more.
    package mutating func outcomes(of feedback: TransportFeedback, at now: MonotonicTime) -> [PacketOutcome] {
        guard count > 0 else { return [] }
        hasFeedback = true
        missesFeedback = lastFeedback.map { feedback.feedbackCount &- $0 != 1 } ?? false
        lastFeedback = feedback.feedbackCount
        let back = Int64(nextNumber &- feedback.baseSequenceNumber)
        // Distance 0 is the next number, which was not sent yet: it means the packet 65,536 before.
        let first = count - (back == 0 ? 1 << 16 : back)
        let known = max(first, count - Int64(entries.count), 0)
        let end = min(first + Int64(max(feedback.statusCount, 0)), count)
        guard known < end else { return [] }
        var outcomes: [PacketOutcome] = []
        outcomes.reserveCapacity(Int(end - known))
        var untold = bytes(from: firstUnknown, to: known)
        var arrivals = feedback.arrivals[...]
        for number in known..<end {
            let index = number - first
            while let arrival = arrivals.first,
                Int64(arrival.sequenceNumber &- feedback.baseSequenceNumber) < index
            {
                arrivals.removeFirst()
            }
            var arrival: Int64?
            if let next = arrivals.first, next.sequenceNumber == UInt16(truncatingIfNeeded: number) {
                arrival =
                    next.ticks.multipliedReportingOverflow(by: TransportFeedback.nanosecondsPerTick)
                    .partialValue
            }
            guard var outcome = outcome(of: number, arrival, at: now) else { continue }
            (outcome.untold, untold) = (untold, 0)
            outcomes.append(outcome)
        }
        firstUnknown = max(firstUnknown, end)
        return outcomes
    }

    private func bytes(from start: Int64, to end: Int64) -> Int {
        let known = max(start, count - Int64(entries.count))
        guard known < end else { return 0 }
        return (known..<end).reduce(0) { $0 + Int(entries[slot(of: $1)].size) }
    }

    /// A report on one packet, identified by the value of `count` before it left.
    package struct Told: Equatable, Sendable {
        /// The value of `count` before the packet left.
        package var place: Int64
        /// In nanoseconds on the receiver's clock; nil if the packet has not arrived.
        package var arrival: Int64?

        package init(place: Int64, arrival: Int64?) {
            self.place = place
            self.arrival = arrival
        }
    }

    /// Returns the outcomes in a feedback that uses RTP sequence numbers, in the order in which the packets left.
    ///
    /// A packet that was reported lost and arrives after all appears once more.
    /// - Parameter told: in any order; packets that are no longer remembered, or were never sent, are ignored.
    package mutating func outcomes(of told: [Told], at now: MonotonicTime) -> [PacketOutcome] {
        guard !told.isEmpty, count > 0 else { return [] }
        hasFeedback = true
        let known = max(count - Int64(entries.count), 0)..<count
        var outcomes: [PacketOutcome] = []
        for packet in told.sorted(by: { $0.place < $1.place }) where known.contains(packet.place) {
            if var outcome = outcome(of: packet.place, packet.arrival, at: now) {
                outcome.untold = bytes(from: firstUnknown, to: packet.place)
                outcomes.append(outcome)
            }
            firstUnknown = max(firstUnknown, packet.place + 1)
        }
        return outcomes
    }

    /// Notes the fate of a packet; nil if that is nothing new.
    private mutating func outcome(
        of number: Int64, _ arrival: Int64?, at now: MonotonicTime
    ) -> PacketOutcome? {
        let entry = entries[slot(of: number)]
        guard entry.fate != .arrived, entry.fate == .unknown || arrival != nil else { return nil }
        entries[slot(of: number)].fate = arrival == nil ? .lost : .arrived
        guard entry.fate != .repeated else {
            tellsOfRepeats = true
            return nil
        }
        return PacketOutcome(
            number: number, sent: time(of: entry, at: now), size: Int(entry.size), arrival: arrival,
            probe: entry.probe == 0 ? nil : entry.probe, isLate: entry.fate == .lost)
    }

    /// When a packet left.
    private func time(of entry: Entry, at now: MonotonicTime) -> MonotonicTime {
        // Counted back from now, because the first packet may be more than an hour ago; in whole microseconds, so
        // that packets that left together have equal times in every feedback.
        let clock = now.nanoseconds(since: origin) / 1_000
        let age = Int64(UInt32(truncatingIfNeeded: clock) &- entry.sent)
        return origin.advanced(byNanoseconds: (clock - age) * 1_000)
    }

    /// Notes that a packet that was reported lost is sent again under its number.
    ///
    /// It has no further outcome: that the second one arrives does not undo the loss of the first.
    /// - Parameter number: the value of `count` before it left.
    package mutating func settle(_ number: Int64) {
        if isLost(number) { entries[slot(of: number)].fate = .repeated }
    }

    /// Whether a packet was reported lost, and neither sent again nor reported to have arrived since.
    ///
    /// False for one that is not remembered.
    /// - Parameter number: the value of `count` before it left.
    package func isLost(_ number: Int64) -> Bool { entry(of: number)?.fate == .lost }

    /// Whether a packet was sent again and not reported to have arrived since; false for one that is not remembered.
    /// - Parameter number: the value of `count` before it left first.
    package func isRepeated(_ number: Int64) -> Bool { entry(of: number)?.fate == .repeated }

    /// When a packet left first; nil for one that is not remembered.
    /// - Parameter number: the value of `count` before it left.
    package func departure(of number: Int64, at now: MonotonicTime) -> MonotonicTime? {
        entry(of: number).map { time(of: $0, at: now) }
    }

    private func entry(of number: Int64) -> Entry? {
        guard number < count, number >= max(count - Int64(entries.count), 0) else { return nil }
        return entries[slot(of: number)]
    }

    private func slot(of number: Int64) -> Int {
        Int(truncatingIfNeeded: number & Int64(entries.count - 1))
    }
}
