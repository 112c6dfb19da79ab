import Base
import Peer

/// The path to a client that tells of each packet when it came or of how much it can take in, that is connected by TCP,
/// or that has lost too much by its reports: what was sent over it, and what it takes.
///
/// A class of its own, because every slot of the session reads and writes it with every packet.
final class OutgoingPath {
    var packets = SentPackets()
    /// Of a client that tells of packets by their own sequence numbers.
    var receiverClock = ReceiverClock()
    /// By what the client tells of each packet.
    var estimator = BandwidthEstimator()
    /// By how far its TCP connection has come, which counts then alone; nil over UDP.
    private(set) var backlog: BacklogEstimator?
    /// By what the client says that it can take in, or reports that it lost; nil until then, and where it tells of each
    /// packet.
    private var reported: ReportEstimator?
    var allocator = LayerAllocator()
    /// What is being sent to find out whether the path takes more.
    var probe: ProbeRun?

    /// Of the latest packets, how many were told of, and how many of those are lost.
    private var told = 0
    private var lost = 0
    /// So many packets tell what share is lost.
    private static let memory = 64
    private static let fewest = 16
    /// What became of packets that were sent before is of no account: much less is sent since.
    private var lossSince = MonotonicTime.zero

    /// Takes the packets out for as long as a batch is sent: within that nobody else looks at them, and each one is
    /// numbered without a look at who else does.
    func borrowPackets() -> SentPackets {
        var borrowed = SentPackets()
        swap(&borrowed, &packets)
        return borrowed
    }

    /// Whether the client has told of any packet or of the whole, or its TCP connection has; nothing is known before.
    var isKnown: Bool { tellsOfLoss || reported != nil }

    /// Whether it is known by what the client says that it can take in.
    var isReported: Bool { !tellsOfLoss && reported != nil }

    /// Whether it is known by what the client reports to be lost, and nothing else.
    var goesByLossAlone: Bool { isReported && reported?.goesByLossAlone == true }

    /// Whether what is lost is known sooner than by reports.
    var tellsOfLoss: Bool { backlog != nil || packets.hasFeedback }

    /// Bits a second that it takes.
    var bitrate: Int { backlog?.bitrate ?? reported?.bitrate ?? estimator.bitrate }

    /// Why that is not more.
    var cause: BandwidthEstimator.Cause { backlog?.cause ?? reported?.cause ?? estimator.cause }

    /// Whether its queue is growing or full right now.
    var isOverused: Bool { backlog?.isOverused ?? reported?.isOverused ?? estimator.isOverused }

    /// Bits a second at which bursts come; nil where that is not known.
    var burstRate: Int? { backlog == nil && reported == nil ? estimator.burstRate : nil }

    /// How long packets wait in its queue, where they are told of one by one.
    var queueDelay: Duration { backlog == nil && reported == nil ? estimator.queueDelay : .zero }

    /// Whether a quarter and more of what is sent is lost: whatever the estimate says, that is too much for the path.
    ///
    /// TCP loses nothing: what does not come was left out here.
    var isLossy: Bool { backlog == nil && told >= Self.fewest && lost * 4 >= told }

    /// Whether a tenth and more of it is lost, of which repairs make even more.
    var losesSome: Bool { backlog == nil && told >= Self.fewest && lost * 10 >= told }

    /// Percent of what the path takes that leave its full queue room to drain.
    private static let draining = 70

    /// Bits a second that may be sent.
    var available: Int {
        // Of what is known by loss alone that is taken off already.
        guard isLossy, !goesByLossAlone else { return bitrate }
        return min(bitrate, burstRate ?? .max) / 100 * Self.draining
    }

    /// Share of the latest packets that are lost, 0 to 1; nil where too few were told of.
    var lossShare: Double? { told >= Self.fewest ? Double(lost) / Double(told) : nil }

    func receive(_ outcomes: [PacketOutcome], roundTrip: Duration?, at now: MonotonicTime) {
        let outages = Outages(in: outcomes)
        for (place, outcome) in outcomes.enumerated()
        where !outcome.isLate && outcome.sent >= lossSince && !outages.contains(place) {
            noteLoss(outcome.arrival == nil ? 1 : 0, of: 1)
        }
        guard backlog == nil else { return }
        estimator.receive(outcomes, roundTrip: roundTrip, at: now)
    }

    /// So that the latest packets count.
    private func noteLoss(_ lost: Int, of told: Int) {
        self.told += told
        self.lost += lost
        guard self.told >= Self.memory else { return }
        self.told /= 2
        self.lost /= 2
    }

    /// Takes in what the client says that it can take in.
    /// - Returns: whether it was looked at.
    func receive(
        _ estimate: UInt64, of stream: Int, sent: UInt64, roundTrip: Duration?, at now: MonotonicTime
    ) -> Bool {
        var known = reported ?? ReportEstimator()
        let isNews = known.receive(estimate, of: stream, sent: sent, roundTrip: roundTrip, at: now)
        // Memory of the path is nobody's who is not measured by it.
        if isNews { reported = known }
        if known.isProbing == false { probe = nil }
        return isNews
    }

    /// Takes in what reports tell of loss, where nothing else does.
    func receive(_ interval: LossResponse.Interval, sent: UInt64, at now: MonotonicTime) {
        // Of a long report that is the share of all of it.
        let told = min(interval.expected, Self.memory)
        let share = Double(interval.lost) / Double(max(interval.expected, 1))
        (self.told, self.lost) = (told, interval.hasBurst ? 0 : Int(share * Double(told)))
        reported?.receive(interval, sent: sent, at: now)
        if reported?.isProbing == false { probe = nil }
    }

    /// Goes by what reports tell of loss, where nothing else is told.
    /// - Parameter bitrate: bits a second that arrived of all pictures.
    func followLoss(arrived bitrate: Int, at now: MonotonicTime) {
        guard !isKnown else { return }
        reported = ReportEstimator(arrived: bitrate, at: now)
    }

    /// Takes in how far the TCP connection has come.
    func receive(_ progress: StreamBacklog, at now: MonotonicTime) {
        if backlog == nil { backlog = BacklogEstimator() }
        backlog?.receive(progress, at: now)
        if backlog?.isProbing == false { probe = nil }
    }

    /// The client is not connected by TCP any more.
    func leaveStream() {
        backlog = nil
        probe = nil
    }

    /// Tells what could be used, in bits a second; nil for nothing.
    func want(_ bitrate: Int?, at now: MonotonicTime) {
        guard backlog == nil else { backlog?.want(bitrate); return }
        guard reported == nil else { reported?.want(bitrate); return }
        estimator.want(bitrate, at: now)
    }

    /// Lets time pass.
    /// - Returns: whether something may have changed.
    func advance(to now: MonotonicTime) -> Bool {
        guard backlog == nil, isKnown else { return false }
        if reported != nil { return reported?.advance(to: now) ?? false }
        guard let due = estimator.deadline, due <= now else { return false }
        estimator.advance(to: now)
        return true
    }

    /// Begins a probe, if it is time.
    func beginProbe(at now: MonotonicTime) {
        guard probe == nil else { return }
        let due =
            backlog != nil
            ? backlog?.probeDue(at: now)
            : reported != nil ? reported?.probeDue(at: now) : estimator.probeDue(at: now)
        probe = due.map { ProbeRun($0, at: now) }
    }

    /// Ends a probe that cannot be sent.
    func giveUpProbe(at now: MonotonicTime) {
        probe = nil
        if backlog != nil { backlog?.trustProbe(at: now) } else { reported?.trustProbe(at: now) }
    }

    /// Much less is sent from now on: what was lost says nothing of it.
    func forgetLoss(at now: MonotonicTime) {
        lossSince = now
        (told, lost) = (0, 0)
    }

    /// When something is to be done next.
    var deadline: MonotonicTime {
        let estimate =
            backlog != nil
            ? backlog?.deadline
            : reported != nil ? reported?.deadline : packets.hasFeedback ? estimator.deadline : nil
        return min(probe?.deadline ?? .distantFuture, estimate ?? .distantFuture)
    }
}

/// A probe that is being sent: its packets leave in steps, at its bit rate.
struct ProbeRun {
    let probe: Probe
    /// Bytes that have left, and packets.
    private(set) var sent = 0
    private(set) var packets = 0
    private let began: MonotonicTime
    private(set) var deadline: MonotonicTime

    private static let step = Duration.milliseconds(2)
    /// However late a turn comes, no more leaves at once.
    private static let largestStep = 16 * 1_024

    init(_ probe: Probe, at now: MonotonicTime) {
        self.probe = probe
        began = now
        deadline = now
    }

    var isOver: Bool { sent >= probe.bytes }

    /// Bytes that may leave now; the next are due at `deadline`.
    mutating func bytesDue(at now: MonotonicTime) -> Int {
        guard now >= deadline else { return 0 }
        deadline = now + Self.step
        let elapsed = min(max(now.nanoseconds(since: began), 0), 1_000_000_000)
        let allowed = Int(elapsed / 1_000) * min(probe.bitrate, 1 << 30) / 8_000_000 + 1
        return min(allowed - sent, Self.largestStep, probe.bytes - sent)
    }

    mutating func note(_ bytes: Int) {
        sent += max(bytes, 1)
        packets += 1
    }
}
