import Base
import Peer
import TestSupport

/// A server that sends to one viewer over a virtual link, with the estimator under test; a step is a millisecond.
struct EstimatorWorld {
    /// What the server sends besides sound and probes.
    enum Source {
        case none
        /// Frames each 33 ms at a rate, with a key frame of so many times the size of others each 2 s.
        case fixed(Double, keyFrame: Double = 10)
        /// Frames at the rate that the estimator tells, which the source follows within 100 ms.
        case adaptive(atMost: Double)
        /// The highest of several layers that fits with sound into 95 % of the estimate, switched at each frame.
        case layers([Double])
    }

    struct Path {
        /// Bits a second from a time in milliseconds on.
        var capacity: [(from: Int, rate: Double)]
        /// Milliseconds at the present capacity, beyond which packets are dropped.
        var queue = 300.0
        var oneWay = 25
        /// Milliseconds at most; packets keep their order.
        var jitter = 0.0
        var loss = 0.0
        /// Drops what exceeds the capacity by more than so many milliseconds of it; nil for a queue.
        var policer: Double?
        /// Bits a second of other traffic from a time on.
        var cross: [(from: Int, rate: Double)] = []
        var feedback = 50
        /// Milliseconds in which all feedback is lost.
        var silence = 0..<0
        /// The link stands still for some milliseconds in each so many, as radio links do.
        var pause = 0
        var pauseEach = 1_000
        /// Milliseconds in which nothing comes through.
        var outage = 0..<0

        init(_ capacity: Double) { self.capacity = [(0, capacity)] }
        init(_ capacity: [(from: Int, rate: Double)]) { self.capacity = capacity }
    }

    /// What was to be seen each 10 ms.
    struct Sample {
        var time: Int
        var bitrate: Double
        var capacity: Double
        var isOverused: Bool
        var queue: Double
        var served: Double
    }

    private struct Packet {
        var sequence = -1
        var size: Double
        var probe: UInt8?
    }

    private struct Sent {
        var time: MonotonicTime
        var size: Int
        var probe: UInt8?
        var arrival: Int64?
        var isReported = false
    }

    private static let origin: Int64 = 7_777_000_000_000
    var estimator: BandwidthEstimator
    var path: Path
    var source: Source
    var hasSound = true
    /// What is wanted while it is beyond the estimate; nil to want nothing.
    var wanted: Double?
    private(set) var samples: [Sample] = []
    private(set) var probes: [(time: Int, probe: Probe)] = []
    private(set) var time = 0
    private var random: SeededGenerator
    private var queue: [Packet] = []
    private var head = 0
    private var queued = 0.0
    private var tokens = 0.0
    private var crossDebt = 0.0
    private var sent: [Sent] = []
    private var unreported = 0
    private var newest = -1
    private var lastArrival: Int64 = 0
    private var feedback: [(due: Int, outcomes: [PacketOutcome], roundTrip: Duration)] = []
    private var probing: (probe: Probe, left: Int, debt: Double)?
    private var frame = 0
    private var followed = 0.0
    private var served = 0.0

    init(_ path: Path, source: Source, limits: BandwidthEstimator.Limits = .init(), seed: UInt64 = 1) {
        self.path = path
        self.source = source
        estimator = BandwidthEstimator(limits: limits)
        random = SeededGenerator(seed: seed)
        followed = Double(limits.start)
    }

    private func value(_ steps: [(from: Int, rate: Double)]) -> Double {
        steps.last { $0.from <= time }?.rate ?? 0
    }

    var capacity: Double { value(path.capacity) }
    private var now: MonotonicTime { at(Int64(time)) }

    mutating func run(until end: Int) {
        while time < end {
            step()
            time += 1
        }
    }

    private mutating func step() {
        if time % 100 == 0 { want() }
        deliverFeedback()
        if let deadline = estimator.deadline, deadline <= now {
            estimator.advance(to: now)
            askForProbe()
        }
        addCross()
        if hasSound, time % 20 == 7 { send(Double.random(in: 110...130, using: &random)) }
        sendFrame()
        sendProbe()
        serve()
        if time % path.feedback == path.feedback - 1 { composeFeedback() }
        if time % 10 == 0 {
            samples.append(
                Sample(
                    time: time, bitrate: Double(estimator.bitrate), capacity: capacity,
                    isOverused: estimator.isOverused, queue: queued * 8_000 / capacity, served: served))
            served = 0
        }
    }

    private mutating func want() {
        estimator.want(wanted.map { Int($0) }, at: now)
    }

    private mutating func askForProbe() {
        guard let probe = estimator.probeDue(at: now) else { return }
        probes.append((time, probe))
        probing = (probe, probe.bytes, 0)
    }

    private mutating func sendFrame() {
        guard time * 30 / 1_000 != (time - 1) * 30 / 1_000 || time == 0 else { return }
        frame += 1
        if frame % 3 == 0 { followed = Double(estimator.bitrate) }
        let rate: Double
        var factor = 1.0
        switch source {
        case .none: return
        case .fixed(let wanted, let keyFrame):
            rate = wanted
            factor = (frame % 60 == 0 ? keyFrame : 1) * 60 / (59 + keyFrame)
        case .adaptive(let most): rate = min(followed * 0.97 - 60_000, most)
        case .layers(let layers):
            guard let layer = layers.last(where: { $0 + 60_000 <= 0.95 * Double(estimator.bitrate) })
            else { return }
            rate = layer
        }
        var left = max(rate, 20_000) / 30 / 8 * factor * Double.random(in: 0.92...1.08, using: &random)
        while left > 0 {
            send(min(max(left, 100), 1_200))
            left -= 1_200
        }
    }

    private mutating func sendProbe() {
        guard var current = probing else { return }
        current.debt += Double(current.probe.bitrate) / 8_000
        while current.debt > 0, current.left > 0 {
            send(1_200, probe: current.probe.number)
            current.debt -= 1_200
            current.left -= 1_200
        }
        probing = current.left > 0 ? current : nil
    }

    private mutating func addCross() {
        crossDebt += value(path.cross) / 8_000
        while crossDebt >= 1_200 {
            crossDebt -= 1_200
            enqueue(Packet(size: 1_200))
        }
    }

    private mutating func send(_ size: Double, probe: UInt8? = nil) {
        let size = size.rounded()
        sent.append(Sent(time: now, size: Int(size), probe: probe))
        estimator.sent(Int(size), at: now)
        enqueue(Packet(sequence: sent.count - 1, size: size, probe: probe))
    }

    private mutating func enqueue(_ packet: Packet) {
        if path.outage.contains(time) { return }
        if path.policer != nil {
            guard tokens >= packet.size else { return }
            tokens -= packet.size
            return arrive(packet, after: 0)
        }
        guard queued + packet.size <= max(capacity * path.queue / 8_000, 3_000) else { return }
        queue.append(packet)
        queued += packet.size
    }

    private mutating func serve() {
        if let depth = path.policer {
            tokens = min(tokens + capacity / 8_000, capacity * depth / 8_000)
            return
        }
        if time % path.pauseEach < path.pause { return }
        let budget = capacity / 8_000
        var used = 0.0
        while head < queue.count, used < budget {
            let part = min(queue[head].size, budget - used)
            used += part
            queue[head].size -= part
            queued -= part
            guard queue[head].size <= 1e-9 else { break }
            arrive(queue[head], after: used / budget)
            head += 1
        }
        if head > 1_000 {
            queue.removeFirst(head)
            head = 0
        }
    }

    private mutating func arrive(_ packet: Packet, after milliseconds: Double) {
        guard packet.sequence >= 0 else { return }
        if path.loss > 0, Double.random(in: 0..<1, using: &random) < path.loss { return }
        served += Double(sent[packet.sequence].size)
        let jitter = path.jitter > 0 ? Double.random(in: 0...path.jitter, using: &random) : 0
        let exact = Double(time + path.oneWay) + milliseconds + jitter
        // Ticks of 250 µs.
        let arrival = max(Int64((exact * 4).rounded(.down)) * 250_000, lastArrival)
        lastArrival = arrival
        sent[packet.sequence].arrival = arrival
    }

    private mutating func composeFeedback() {
        let present = Int64(time) * 1_000_000
        var outcomes: [PacketOutcome] = []
        while newest + 1 < sent.count {
            // The newest that has come; what is missing before it is lost.
            guard let next = sent[(newest + 1)...].firstIndex(where: { $0.arrival != nil }),
                let arrival = sent[next].arrival, arrival <= present
            else { break }
            newest = next
        }
        guard newest >= unreported else { return }
        for index in unreported...newest {
            let packet = sent[index]
            outcomes.append(
                PacketOutcome(
                    sent: packet.time, size: packet.size, arrival: packet.arrival.map { $0 + Self.origin },
                    probe: packet.probe))
        }
        let last = sent[newest]
        let hold = present - (last.arrival ?? present)
        let due = time + path.oneWay
        let trip = at(Int64(due)).nanoseconds(since: last.time) - hold
        unreported = newest + 1
        guard !path.silence.contains(time) else { return }
        feedback.append((due, outcomes, .nanoseconds(trip)))
    }

    private mutating func deliverFeedback() {
        while let first = feedback.first, first.due <= time {
            feedback.removeFirst()
            estimator.receive(first.outcomes, roundTrip: first.roundTrip, at: now)
            askForProbe()
        }
    }
}

extension EstimatorWorld {
    func samples(_ range: Range<Int>) -> [Sample] {
        samples.filter { range.contains($0.time) }
    }

    /// Estimate in a range of milliseconds, as shares of the capacity: least, mean and most.
    func shares(_ range: Range<Int>) -> (least: Double, mean: Double, most: Double) {
        let shares = samples(range).map { $0.bitrate / $0.capacity }
        return (shares.min() ?? 0, shares.reduce(0, +) / Double(max(shares.count, 1)), shares.max() ?? 0)
    }

    /// Bits that the viewer got as a share of what the link could have brought.
    func use(_ range: Range<Int>) -> Double {
        let chosen = samples(range)
        return chosen.reduce(0) { $0 + $1.served * 8 } / chosen.reduce(1) { $0 + $1.capacity / 100 }
    }

    /// Milliseconds in the queue that so many per cent of the time was not exceeded.
    func queue(percentile: Int, _ range: Range<Int>) -> Double {
        let sorted = samples(range).map(\.queue).sorted()
        return sorted.isEmpty ? 0 : sorted[min(sorted.count * percentile / 100, sorted.count - 1)]
    }

    /// Milliseconds at which the estimate first was below or above a rate, from a time on.
    func first(from start: Int, where isReached: (Sample) -> Bool) -> Int? {
        samples.first { $0.time >= start && isReached($0) }?.time
    }

    /// The longest time for which the estimate was below a share of the capacity.
    func longest(below share: Double, _ range: Range<Int>) -> Int {
        var longest = 0
        var run = 0
        for sample in samples(range) {
            run = sample.bitrate < share * sample.capacity ? run + 10 : 0
            longest = max(longest, run)
        }
        return longest
    }
}
