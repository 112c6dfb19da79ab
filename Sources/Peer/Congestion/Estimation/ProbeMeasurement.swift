import Base

/// Measures how one probe came through.
///
/// What else left between its packets used the link as well, and counts.
/// - Source: the conditions are nearly those of browsers: at least 80 % of the packets, received at no more than four
///   times the rate of sending; a path that delivers at less than 90 % of it is full, and takes 95 % of what it
///   delivered. Browsers refuse more than twice the rate; here a frame may have left just before in one burst, and
///   what is received too fast is worth no more than what was sent.
package struct ProbeMeasurement: Equatable, Sendable {
    package enum Result: Equatable, Sendable {
        /// The path took it; bits a second.
        case passed(Double)
        /// The path was full; it takes so many bits a second.
        case saturated(Double)
        /// Too little of it came, or not as packets of a link come.
        case invalid
    }

    package let probe: Probe
    /// Bits a second that left in all, at most, by which what comes through is judged.
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
    /// Bytes that came between first and last packet, and those after the last one so far.
    private var between = 0
    private var pending = 0

    package init(_ probe: Probe, target: Double) {
        self.probe = probe
        self.target = target
    }

    /// Takes in a packet in the order in which they were sent.
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

    /// Whether all of it that can have come has come.
    package var isComplete: Bool { bytesCame >= probe.bytes }

    /// Whether a packet that left at this time shows that the probe is over.
    package func isOver(at sent: MonotonicTime) -> Bool {
        firstSent != nil && sent > lastSent + .milliseconds(100)
    }

    package var result: Result {
        guard let firstSent, let firstArrival, came >= 4 else { return .invalid }
        guard came * 5 >= packets * 4, bytesCame * 10 >= probe.bytes * 7 else { return .invalid }
        let sentSpan = Double(lastSent.nanoseconds(since: firstSent))
        let arrivalSpan = Double(lastArrival &- firstArrival)
        guard arrivalSpan > 0, arrivalSpan < 5e9 else { return .invalid }
        // What left faster than it was asked to tells of no more than was asked.
        let left = Double(between + firstSize - lastSize) * 8e9
        let sendRate = sentSpan > 0 ? min(left / sentSpan, target) : target
        let receiveRate = Double(between) * 8e9 / arrivalSpan
        guard receiveRate <= 4 * sendRate else { return .invalid }
        if receiveRate < 0.9 * sendRate { return .saturated(0.95 * receiveRate) }
        return .passed(min(sendRate, receiveRate))
    }
}
