import Base

/// Gathers packets that left within 5 ms into groups, and measures each group by the arrival of its first packet.
///
/// A frame leaves in one burst, so its later packets wait behind its own first ones: only the first one shows the
/// queue that was there before. That is why groups are not measured by their last packets.
/// - Source: draft-ietf-rmcat-gcc-02 §5.2 (pre-filtering), from which it deviates in that point.
package struct PacketGroups: Sendable {
    /// The first packet of a group, relative to the first packet of the group before.
    package struct Head: Equatable, Sendable {
        /// Milliseconds since the very first packet left, on our clock.
        package var sent: Double
        /// Milliseconds since the very first packet arrived, on the receiver's clock.
        package var arrival: Double
        /// Milliseconds since the first packet of the previous group left.
        package var sentGap: Double
        /// Milliseconds since the first packet of the previous group arrived.
        package var arrivalGap: Double
        /// Bytes of the previous group that arrived.
        package var load: Int
        /// Bytes that a continuously busy link served between the two arrivals.
        package var served: Int

        package init(
            sent: Double, arrival: Double, sentGap: Double, arrivalGap: Double, load: Int, served: Int
        ) {
            self.sent = sent
            self.arrival = arrival
            self.sentGap = sentGap
            self.arrivalGap = arrivalGap
            self.load = load
            self.served = served
        }
    }

    /// The arrival of a burst of several packets, spread by the slowest link.
    package struct Train: Equatable, Sendable {
        /// Bytes after its first packet.
        package var bytes: Int
        /// Milliseconds from the first arrival to the last.
        package var spread: Double

        package init(bytes: Int, spread: Double) {
            self.bytes = bytes
            self.spread = spread
        }
    }

    private struct Group {
        var sent: MonotonicTime
        var arrival: Int64
        var lastArrival: Int64
        /// The longest time between two arrivals, which may be a stall of the path.
        var longestGap: Int64 = 0
        var firstSize: Int
        var bytes: Int
        var sentMilliseconds: Double
        var arrivalMilliseconds: Double
    }

    /// Nanoseconds within which packets belong to one group.
    private static let length: Int64 = 5_000_000
    private var current: Group?
    /// The group completed when `add` last returned a head; nil if it had one packet.
    package private(set) var train: Train?

    package init() {}

    /// The group that is arriving, without its longest gap; nil while only one packet has arrived.
    package var incoming: Train? {
        guard let current, current.bytes > current.firstSize else { return nil }
        let spread = current.lastArrival &- current.arrival &- current.longestGap
        return Train(bytes: current.bytes - current.firstSize, spread: Double(spread) / 1e6)
    }

    /// Adds a packet that arrived; in the order in which packets were sent.
    /// - Parameter untold: bytes without feedback that left after the previously reported packet and before this
    ///   one; assumed to have arrived.
    /// - Returns: the head of a new group, if this packet begins one and it is not the first.
    package mutating func add(sent: MonotonicTime, size: Int, arrival: Int64, untold: Int = 0) -> Head? {
        train = nil
        guard var group = current else {
            current = Group(
                sent: sent, arrival: arrival, lastArrival: arrival, firstSize: size, bytes: size,
                sentMilliseconds: 0, arrivalMilliseconds: 0)
            return nil
        }
        let gap = sent.nanoseconds(since: group.sent)
        guard gap > Self.length else {
            // A packet sent before the group began belongs to no group any more.
            guard gap >= 0 else { return nil }
            group.bytes += size + untold
            group.longestGap = max(group.longestGap, arrival &- group.lastArrival)
            if arrival &- group.lastArrival > 0 { group.lastArrival = arrival }
            current = group
            return nil
        }
        let sentGap = Double(gap) / 1e6
        // Wraps for impossible times; users of the gap check its range.
        let arrivalGap = Double(arrival &- group.arrival) / 1e6
        if group.bytes > group.firstSize {
            train = Train(
                bytes: group.bytes - group.firstSize,
                spread: Double(group.lastArrival &- group.arrival) / 1e6)
        }
        let head = Head(
            sent: group.sentMilliseconds + sentGap, arrival: group.arrivalMilliseconds + arrivalGap,
            sentGap: sentGap, arrivalGap: arrivalGap, load: group.bytes + untold,
            served: group.bytes - group.firstSize + untold + size)
        current = Group(
            sent: sent, arrival: arrival, lastArrival: arrival, firstSize: size, bytes: size,
            sentMilliseconds: head.sent, arrivalMilliseconds: head.arrival)
        return head
    }

    /// Discards everything, as after a jump of the receiver's clock.
    package mutating func reset() {
        self = Self()
    }
}
