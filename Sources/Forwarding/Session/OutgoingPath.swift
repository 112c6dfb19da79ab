import Base
import Peer

/// The path to a client: what was sent over it, and how much it can carry.
///
/// It exists for clients that send feedback on each packet or an estimate of what they can receive (REMB), that are
/// connected by TCP, or that have reported too much loss. It is a class, because every slot of the session reads and
/// writes it with every packet.
final class OutgoingPath {
    /// The packets that were sent, to which feedback refers.
    var packets = SentPackets()
    /// The clock of a client that sends feedback by RTP sequence numbers (RFC 8888).
    var receiverClock = ReceiverClock()
    /// Estimate from the client's feedback on each packet.
    var estimator = BandwidthEstimator()
    /// Estimate from the progress of the client's TCP connection, which takes precedence over all others; nil over
    /// UDP.
    private(set) var backlog: BacklogEstimator?
    /// The client's end of the TCP connection, and what it had acknowledged last; nil over UDP.
    private var stream: (address: TransportAddress?, acknowledged: UInt64)?
    /// Estimate from the client's REMB or loss reports; nil before the first, and for a client with feedback on each
    /// packet.
    private var reported: ReportEstimator?
    var allocator = LayerAllocator()
    /// The probe that is being sent to find out whether the path can carry more.
    var probe: ProbeRun?

    /// Number of recent packets with feedback, and how many of those were lost.
    private var told = 0
    private var lost = 0
    /// At this count both numbers are halved, so that recent packets dominate.
    private static let memory = 64
    // Fewer packets than this give no share.
    private static let fewest = 16
    /// Feedback on packets sent before is ignored, because much less is sent since then.
    private var lossSince = MonotonicTime.zero

    /// Moves the packets out while a batch is sent.
    ///
    /// Nothing else reads them meanwhile, and packets can be numbered without an exclusivity check each. The caller
    /// puts them back.
    func borrowPackets() -> SentPackets {
        var borrowed = SentPackets()
        swap(&borrowed, &packets)
        return borrowed
    }

    /// Whether there is any measurement of the path.
    var isKnown: Bool { tellsOfLoss || reported != nil }

    /// Whether the estimate comes from the client's REMB or reports.
    var isReported: Bool { !tellsOfLoss && reported != nil }

    /// Whether the estimate comes from reported loss alone.
    var goesByLossAlone: Bool { isReported && reported?.goesByLossAlone == true }

    /// Whether loss is known sooner than by receiver reports.
    var tellsOfLoss: Bool { backlog != nil || packets.hasFeedback }

    /// Estimated capacity, in bits a second.
    var bitrate: Int { backlog?.bitrate ?? reported?.bitrate ?? estimator.bitrate }

    /// What limits the estimate.
    var cause: BandwidthEstimator.Cause { backlog?.cause ?? reported?.cause ?? estimator.cause }

    /// Whether its queue is growing or full now.
    var isOverused: Bool { backlog?.isOverused ?? reported?.isOverused ?? estimator.isOverused }

    /// Rate at which bursts arrive, in bits a second; nil where it is unknown.
    var burstRate: Int? { backlog == nil && reported == nil ? estimator.burstRate : nil }

    /// How long packets wait in its queue; zero for a client without feedback on each packet.
    var queueDelay: Duration { backlog == nil && reported == nil ? estimator.queueDelay : .zero }

    /// Whether at least a quarter of the packets is lost: too much for the path, whatever the estimate is.
    ///
    /// Over TCP nothing is lost on the path; packets are only left out before sending.
    var isLossy: Bool { backlog == nil && told >= Self.fewest && lost * 4 >= told }

    /// Whether at least a tenth of the packets is lost, so that retransmissions add considerably to the load.
    var losesSome: Bool { backlog == nil && told >= Self.fewest && lost * 10 >= told }

    /// Percentage of the path's capacity at which a full queue drains.
    private static let draining = 70

    /// Bit rate that may be sent, in bits a second.
    var available: Int {
        // An estimate from loss alone already contains this reduction.
        guard isLossy, !goesByLossAlone else { return bitrate }
        return min(bitrate, burstRate ?? .max) / 100 * Self.draining
    }

    /// Share of recent packets that were lost, 0 to 1; nil if there are too few.
    var lossShare: Double? { told >= Self.fewest ? Double(lost) / Double(told) : nil }

    /// Processes feedback on packets; packets lost in an outage do not count as loss.
    func receive(_ outcomes: [PacketOutcome], roundTrip: Duration?, at now: MonotonicTime) {
        let outages = Outages(in: outcomes)
        for (place, outcome) in outcomes.enumerated()
        where !outcome.isLate && outcome.sent >= lossSince && !outages.contains(place) {
            noteLoss(outcome.arrival == nil ? 1 : 0, of: 1)
        }
        guard backlog == nil else { return }
        estimator.receive(outcomes, roundTrip: roundTrip, at: now)
    }

    /// Adds to the counts, and halves them when they reach `memory`, so that recent packets dominate.
    private func noteLoss(_ lost: Int, of told: Int) {
        self.told += told
        self.lost += lost
        guard self.told >= Self.memory else { return }
        self.told /= 2
        self.lost /= 2
    }

    /// Processes a client's estimate of what it can receive (REMB).
    /// - Parameters:
    ///   - estimate: in bits a second.
    ///   - stream: index of the slot that it applies to.
    ///   - sent: total number of bytes sent so far.
    /// - Returns: whether the estimate was used.
    func receive(
        _ estimate: UInt64, of stream: Int, sent: UInt64, roundTrip: Duration?, at now: MonotonicTime
    ) -> Bool {
        var known = reported ?? ReportEstimator()
        let isNews = known.receive(estimate, of: stream, sent: sent, roundTrip: roundTrip, at: now)
        // A session that is not measured by reports does not store the estimator.
        if isNews { reported = known }
        if known.isProbing == false { probe = nil }
        return isNews
    }

    /// Processes reported loss, for a client without other feedback.
    func receive(_ interval: LossResponse.Interval, sent: UInt64, at now: MonotonicTime) {
        // A long report counts with its overall share.
        let told = min(interval.expected, Self.memory)
        let share = Double(interval.lost) / Double(max(interval.expected, 1))
        (self.told, self.lost) = (told, interval.hasBurst ? 0 : Int(share * Double(told)))
        reported?.receive(interval, sent: sent, at: now)
        if reported?.isProbing == false { probe = nil }
    }

    /// Starts estimating from reported loss, for a client without other feedback.
    /// - Parameter bitrate: bit rate of everything that arrived, in bits a second.
    func followLoss(arrived bitrate: Int, at now: MonotonicTime) {
        guard !isKnown else { return }
        reported = ReportEstimator(arrived: bitrate, at: now)
    }

    /// Processes the progress of the client's TCP connection.
    ///
    /// Another connection counts its bytes from 0, and has another path: its estimate begins anew.
    /// - Parameter address: the client's end of the connection.
    func receive(_ progress: StreamBacklog, from address: TransportAddress?, at now: MonotonicTime) {
        if let stream, stream.address != address || progress.acknowledged < stream.acknowledged {
            leaveStream()
        }
        stream = (address, progress.acknowledged)
        if backlog == nil { backlog = BacklogEstimator() }
        backlog?.receive(progress, at: now)
        if backlog?.isProbing == false { probe = nil }
    }

    /// Forgets the TCP connection, which the client has left.
    func leaveStream() {
        stream = nil
        backlog = nil
        probe = nil
    }

    /// Sets the bit rate that could be used, in bits a second; nil if there is nothing better to send.
    func want(_ bitrate: Int?, at now: MonotonicTime) {
        guard backlog == nil else { backlog?.want(bitrate); return }
        guard reported == nil else { reported?.want(bitrate); return }
        estimator.want(bitrate, at: now)
    }

    /// Advances the estimate that is in use.
    /// - Returns: whether it may have changed.
    func advance(to now: MonotonicTime) -> Bool {
        guard backlog == nil, isKnown else { return false }
        if reported != nil { return reported?.advance(to: now) ?? false }
        guard let due = estimator.deadline, due <= now else { return false }
        estimator.advance(to: now)
        return true
    }

    /// Begins a probe if one is due and none is running.
    func beginProbe(at now: MonotonicTime) {
        guard probe == nil else { return }
        let due =
            backlog != nil
            ? backlog?.probeDue(at: now)
            : reported != nil ? reported?.probeDue(at: now) : estimator.probeDue(at: now)
        probe = due.map { ProbeRun($0, at: now) }
    }

    /// Cancels a probe that cannot be sent.
    ///
    /// Over TCP, or by reports, the wanted rate may be believed without proof instead: sending it is the only way to
    /// try it.
    func giveUpProbe(at now: MonotonicTime) {
        probe = nil
        if backlog != nil { backlog?.trustProbe(at: now) } else { reported?.trustProbe(at: now) }
    }

    /// Forgets the loss so far, because much less is sent from now on.
    func forgetLoss(at now: MonotonicTime) {
        lossSince = now
        (told, lost) = (0, 0)
    }

    /// When `advance` or `beginProbe` should run next.
    var deadline: MonotonicTime {
        let estimate =
            backlog != nil
            ? backlog?.deadline
            : reported != nil ? reported?.deadline : packets.hasFeedback ? estimator.deadline : nil
        return min(probe?.deadline ?? .distantFuture, estimate ?? .distantFuture)
    }
}

/// A probe that is being sent in small steps, at its bit rate.
struct ProbeRun {
    let probe: Probe
    /// Number of bytes sent so far.
    private(set) var sent = 0
    /// Number of packets sent so far.
    private(set) var packets = 0
    private let began: MonotonicTime
    private(set) var deadline: MonotonicTime

    // Time between two steps.
    private static let step = Duration.milliseconds(2)
    /// Maximum number of bytes in one step, however late it comes.
    private static let largestStep = 16 * 1_024

    init(_ probe: Probe, at now: MonotonicTime) {
        self.probe = probe
        began = now
        deadline = now
    }

    var isOver: Bool { sent >= probe.bytes }

    /// Number of bytes that may be sent now; the next step is due at `deadline`.
    mutating func bytesDue(at now: MonotonicTime) -> Int {
        guard now >= deadline else { return 0 }
        deadline = now + Self.step
        let elapsed = min(max(now.nanoseconds(since: began), 0), 1_000_000_000)
        let allowed = Int(elapsed / 1_000) * min(probe.bitrate, 1 << 30) / 8_000_000 + 1
        return min(allowed - sent, Self.largestStep, probe.bytes - sent)
    }

    /// Records a packet of the probe; at least one byte is counted, so that every probe ends.
    mutating func note(_ bytes: Int) {
        sent += max(bytes, 1)
        packets += 1
    }
}
