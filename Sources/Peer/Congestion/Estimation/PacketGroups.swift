import Base

/// Gathers packets that left within 5 ms into groups, and measures each by the arrival of its first packet.
///
/// A frame leaves in one burst, so that its later packets wait for its own first ones: only the first one shows the
/// queue that stood before. That is why groups are not measured by their last packets.
/// - Source: draft-ietf-rmcat-gcc-02 §5.2 (pre-filtering), from which it deviates in that point.
package struct PacketGroups: Sendable {
    /// The first packet of a group, and what passed since the first one of the group before.
    package struct Head: Equatable, Sendable {
        /// In milliseconds since the first packet of all, on our clock.
        package var sent: Double
        /// In milliseconds since the arrival of the first packet of all, on the receiver's clock.
        package var arrival: Double
        /// Milliseconds since the group before left.
        package var sentGap: Double
        /// Milliseconds since the first packet of the group before came.
        package var arrivalGap: Double
        /// Bytes of the group before that came.
        package var load: Int
        /// Bytes that a link which was never idle served between the two arrivals.
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

    /// How a group of several packets that left together came: spread by the slowest link.
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
        /// The longest time between two arrivals, which may be a pause of the path.
        var longestGap: Int64 = 0
        var firstSize: Int
        var bytes: Int
        var sentMilliseconds: Double
        var arrivalMilliseconds: Double
    }

    /// What leaves within it is one group.
    private static let length: Int64 = 5_000_000
    private var current: Group?
    /// The group that was complete when `add` last returned a head; nil if it had one packet.
    package private(set) var train: Train?

    package init() {}

    /// The group that is coming in, without its longest pause; nil for one that has but come.
    package var incoming: Train? {
        guard let current, current.bytes > current.firstSize else { return nil }
        let spread = current.lastArrival &- current.arrival &- current.longestGap
        return Train(bytes: current.bytes - current.firstSize, spread: Double(spread) / 1e6)
    }

    /// Takes in a packet that came, in the order in which they were sent.
    /// - Parameter untold: bytes that left before it and after what came before, of which nothing is told. They are
    ///   thought to have come.
    /// - Returns: the head of a new group if the packet is one and another group came before.
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
            // What was sent before the group belongs to none any more.
            guard gap >= 0 else { return nil }
            group.bytes += size + untold
            group.longestGap = max(group.longestGap, arrival &- group.lastArrival)
            if arrival &- group.lastArrival > 0 { group.lastArrival = arrival }
            current = group
            return nil
        }
        let sentGap = Double(gap) / 1e6
        // Wraps for times that no clock tells; whoever reads the gap has bounds for it.
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

    /// Forgets everything, as after a jump of the receiver's clock.
    package mutating func reset() {
        self = Self()
    }
}
