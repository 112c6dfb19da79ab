import Base

/// Measures at which rate one probe came through.
///
/// Other packets that left between those of the probe used the link as well, and count.
/// - Source: the conditions are nearly those of browsers: at least 80 % of the packets, received at no more than
///   four times the sending rate; a path that delivers less than 90 % of that rate is full, and takes 95 % of what
///   it delivered. Browsers refuse more than twice the sending rate; here a frame may have left in one burst just
///   before, and a rate of receiving above that of sending counts only as the latter.
package struct ProbeMeasurement: Equatable, Sendable {
    /// What a probe shows about the path.
    package enum Result: Equatable, Sendable {
        /// The path took it; bits per second.
        case passed(Double)
        /// The path was full; the bits per second that it takes.
        case saturated(Double)
        /// Too few packets arrived, or not as they would over a real link.
        case invalid
    }

    /// The probe that is being measured.
    package let probe: Probe
    /// Upper bound in bits per second for the rate that left during the probe.
    private let target: Double
    private var packets = 0
    private var came = 0
    private var bytesCame = 0
    private var firstSent: MonotonicTime?
    private var lastSent = MonotonicTime.zero
    private var firstArrival: Int64?
    private var lastArrival: Int64 = 0
    private var firstSize = 0
    private var lastSize = 0
    /// Bytes that arrived between the first and the last packet of the probe, and after the last one so far.
    private var between = 0
    private var pending = 0

    /// - Parameter target: bits per second that leave in all during the probe.
    package init(_ probe: Probe, target: Double) {
        self.probe = probe
        self.target = target
    }

    /// Processes a packet; in the order in which packets were sent.
    package mutating func receive(_ outcome: PacketOutcome, size: Int) {
        guard outcome.probe == probe.number, !outcome.isLate else {
            if firstArrival != nil, outcome.arrival != nil { pending += size }
            return
        }
        packets += 1
        if firstSent == nil { firstSent = outcome.sent }
        lastSent = max(lastSent, outcome.sent)
        guard let arrival = outcome.arrival else { return }
        came += 1
        bytesCame += size
        guard let firstArrival else {
            self.firstArrival = arrival
            lastArrival = arrival
            firstSize = size
            return
        }
        if arrival &- firstArrival > lastArrival &- firstArrival { lastArrival = arrival }
        between += pending + size
        pending = 0
        lastSize = size
    }

    /// Whether enough has arrived that the rest need not be awaited.
    package var isComplete: Bool { bytesCame >= probe.bytes }

    /// Whether a packet that left at this time shows that the probe has ended.
    package func isOver(at sent: MonotonicTime) -> Bool {
        firstSent != nil && sent > lastSent + .milliseconds(100)
    }

    /// What the packets so far show.
    package var result: Result {
        guard let firstSent, let firstArrival, came >= 4 else { return .invalid }
        guard came * 5 >= packets * 4, bytesCame * 10 >= probe.bytes * 7 else { return .invalid }
        let sentSpan = Double(lastSent.nanoseconds(since: firstSent))
        let arrivalSpan = Double(lastArrival &- firstArrival)
        guard arrivalSpan > 0, arrivalSpan < 5e9 else { return .invalid }
        // Sending faster than the target proves no more than the target.
        let left = Double(between + firstSize - lastSize) * 8e9
        let sendRate = sentSpan > 0 ? min(left / sentSpan, target) : target
        let receiveRate = Double(between) * 8e9 / arrivalSpan
        guard receiveRate <= 4 * sendRate else { return .invalid }
        if receiveRate < 0.9 * sendRate { return .saturated(0.95 * receiveRate) }
        return .passed(min(sendRate, receiveRate))
    }
}
