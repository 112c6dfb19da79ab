import Base
import Wire

/// What the server knows of one received SSRC: which packets came, which are missing, and what to report.
///
/// Holds no packets. What arrives on an RTX stream is told to the stream it repairs, with the original sequence
/// number; the RTX stream itself has a `ReceiveStream` of its own for its reports.
/// - Source: RFC 3550 §6.4.1, A.1, A.3, A.8; RFC 4585 §6.2.1.
package struct ReceiveStream: Sendable {
    /// What to do about losses.
    package enum Repair: Equatable, Sendable {
        /// NACK was not negotiated, or this is an RTX stream.
        case none
        /// Ask for packets; what cannot be repaired is forgotten.
        case packets
        /// Ask for packets, and for a key frame when they cannot be had.
        case packetsAndKeyFrames
    }

    /// What became of a packet; its index is the sequence number that never wraps.
    package enum Arrival: Equatable, Sendable {
        /// Seen for the first time, and not asked for before.
        case new(Int64)
        /// Fills a gap, by RTX or after it was asked for.
        case repaired(Int64)
        case duplicate(Int64)
        /// Too old to know whether it is a duplicate; drop it.
        case tooOld
    }

    /// How a packet came to us.
    package enum Origin: Equatable, Sendable {
        /// As it was sent, for the first time or again.
        case original
        /// On the RTX stream (RFC 4588).
        case retransmission
        /// Within a later packet (RFC 2198): it fills its place, but the network has lost it.
        case redundancy
    }

    /// Losses between two looks, before any repair: what the network did, not what the viewer notices.
    package struct LossInterval: Equatable, Sendable {
        /// By sequence numbers.
        package var expected: Int
        /// Those of them that had not come when it was their turn.
        package var lost: Int

        package init(expected: Int, lost: Int) {
            self.expected = expected
            self.lost = lost
        }
    }

    /// Packets by what became of them.
    package struct Counters: Equatable, Sendable {
        /// Accepted, repaired ones included.
        package var packets: UInt64 = 0
        /// Of the accepted packets, headers included.
        package var bytes: UInt64 = 0
        /// That came again because they were asked for, as RTX or as they were.
        package var repaired: UInt64 = 0
        /// That were within later packets; not among the accepted ones.
        package var recovered: UInt64 = 0
        /// Dropped: they had come before.
        package var duplicates: UInt64 = 0
        /// Dropped: too far behind to be told from duplicates.
        package var tooOld: UInt64 = 0
        /// Jumps and restarts of the sender.
        package var restarts: UInt64 = 0
    }

    /// A source that changes it begins a new stream.
    package let ssrc: UInt32
    /// In ticks a second.
    package let clockRate: UInt32
    /// Since the stream began.
    package private(set) var counters = Counters()

    private let repair: Repair
    private var window = SequenceWindow()
    private var nacks: NACKGenerator
    private var jitterEstimator: JitterEstimator
    private var rate = RateMeter()

    /// Packets expected before the last jump, and what was expected and received at the last report.
    private var pastExpected: Int64 = 0
    private var reported = Tally()
    /// The same for `takeLoss`, where only originals count as received.
    private var examined = Tally()
    private var originals: Int64 = 0
    /// The latest packets that only later ones carried so far, at most `carriedLimit`.
    private var carried: [Int64] = []
    /// More than a second of sound: what comes later is out of order beyond hope.
    private static let carriedLimit = 64

    private var lastSenderReport: ReceivedSenderReport?

    private struct Tally {
        var expected: Int64 = 0
        var received: Int64 = 0
    }

    private struct ReceivedSenderReport {
        let ntp: UInt64
        let rtpTimestamp: UInt32
        let at: MonotonicTime
    }

    package init(
        ssrc: UInt32, clockRate: UInt32, repair: Repair, nackLimits: NACKGenerator.Limits = .init()
    ) {
        self.ssrc = ssrc
        self.clockRate = clockRate
        self.repair = repair
        nacks = NACKGenerator(limits: nackLimits)
        jitterEstimator = JitterEstimator(clockRate: clockRate)
    }

    /// Takes in one authenticated packet.
    /// - Parameters:
    ///   - size: bytes of the whole packet, for counters and rates only.
    ///   - origin: how it came; `sequenceNumber` and `timestamp` are the original ones.
    ///   - startsKeyFrame: it is the first packet of a key frame a decoder can start at.
    ///   - head: how many packets before that one may belong to the key frame too.
    package mutating func receive(
        sequenceNumber: UInt16, timestamp: UInt32, size: Int,
        origin: Origin = .original, startsKeyFrame: Bool = false, head: Int64 = 0, at now: MonotonicTime
    ) -> Arrival {
        let expectedBefore = expected
        let index: Int64
        var wasRequested = false
        switch window.insert(sequenceNumber, isRetransmission: origin != .original) {
        case .tooOld:
            counters.tooOld &+= 1
            return .tooOld
        case .duplicate(let known):
            counters.duplicates &+= 1
            noteLateOriginal(known, origin)
            return .duplicate(known)
        case .ahead(let newest, let missing):
            index = newest
            if repair != .none, missing > 0 { nacks.missing((index - Int64(missing))..<index, at: now) }
        case .jumped(let newest):
            index = newest
            restart(expectedBefore: expectedBefore)
        case .late(let older):
            index = older
            if repair != .none { wasRequested = nacks.arrived(index) }
        }
        if startsKeyFrame, repair != .none { nacks.keyFrameStarted(at: index - head) }
        guard origin != .redundancy else {
            noteCarried(index)
            return .repaired(index)
        }
        let isRepair = origin == .retransmission || wasRequested
        count(size: size, timestamp: timestamp, isRepair: isRepair, at: now)
        return isRepair ? .repaired(index) : .new(index)
    }

    /// A later packet carried it: reports go on to tell the sender that it got lost.
    private mutating func noteCarried(_ index: Int64) {
        counters.recovered &+= 1
        if carried.count == Self.carriedLimit { carried.removeFirst() }
        carried.append(index)
    }

    /// What was taken out of a later packet comes itself: it was not lost, only out of order.
    private mutating func noteLateOriginal(_ index: Int64, _ origin: Origin) {
        guard origin != .redundancy, let place = carried.firstIndex(of: index) else { return }
        carried.remove(at: place)
        counters.packets &+= 1
        if origin == .original { originals += 1 }
    }

    private mutating func count(size: Int, timestamp: UInt32, isRepair: Bool, at now: MonotonicTime) {
        counters.packets &+= 1
        counters.bytes &+= UInt64(clamping: size)
        rate.add(size, at: now)
        if isRepair {
            counters.repaired &+= 1
        } else {
            originals += 1
            jitterEstimator.add(timestamp: timestamp, at: now)
        }
    }

    /// The numbers between were never sent to us: they are neither lost nor asked for.
    private mutating func restart(expectedBefore: Int64) {
        pastExpected = expectedBefore
        counters.restarts &+= 1
        jitterEstimator.restart()
        if repair != .none { nacks.restart() }
        carried.removeAll(keepingCapacity: true)
    }

    /// Appends the sequence numbers to ask the sender for now; they count as asked for.
    /// - Parameter rtt: smoothed round-trip time to the sender; nil if not known yet.
    package mutating func nacksDue(at now: MonotonicTime, rtt: Duration?, into numbers: inout [UInt16]) {
        nacks.due(at: now, rtt: rtt, into: &numbers)
    }

    /// True once after a loss that will not be repaired, for video whose sender makes key frames on request.
    package mutating func takeKeyFrameDemand() -> Bool {
        nacks.takeKeyFrameDemand() && repair == .packetsAndKeyFrames
    }

    /// When `nacksDue` has to be called next; nil while nothing is missing.
    package var deadline: MonotonicTime? { nacks.deadline }
}

// MARK: - Statistics

extension ReceiveStream {
    /// Packets the sender should have sent from the first to the newest one.
    package var expected: Int64 {
        guard let highest = window.highest else { return 0 }
        return pastExpected &+ highest &- window.lowest &+ 1
    }

    /// Index of the newest packet; its low 32 bits are the extended highest sequence number of a report.
    package var highest: Int64? { window.highest }

    /// The index that a packet with this number has; nil before the first packet, and far from the newest.
    package func index(of sequenceNumber: UInt16) -> Int64? { window.index(of: sequenceNumber) }

    /// Whether a packet before others of the stream was not seen; false for what is too old to know.
    package func isMissing(_ index: Int64) -> Bool { window.isMissing(index) }

    /// In ticks of the media clock.
    package var jitter: UInt32 { jitterEstimator.jitter }

    /// Packets that were asked for in vain.
    package var abandonedCount: UInt64 { nacks.abandonedCount }

    /// Bits per second over about the last second.
    package mutating func bitrate(at now: MonotonicTime) -> Int {
        rate.bitrate(at: now)
    }

    /// What to report of this stream now; nil before the first packet.
    ///
    /// Counts as sent: the next one speaks of what comes after. A repaired packet counts as received, so that the
    /// sender learns what is still missing. Deviates from RFC 3550 §6.4.1: a duplicate does not count, because browsers
    /// probe with packets sent before, each of which would hide a real loss.
    /// - Source: RFC 3550 §6.4.1, A.3.
    package mutating func reportBlock(at now: MonotonicTime) -> ReportBlock? {
        guard let highest else { return nil }
        let tally = Tally(expected: expected, received: Int64(clamping: counters.packets))
        let expectedNow = tally.expected - reported.expected
        let lostNow = expectedNow - (tally.received - reported.received)
        let fraction = expectedNow > 0 && lostNow > 0 ? (lostNow << 8) / expectedNow : 0
        let lost = tally.expected - tally.received
        reported = tally
        var block = ReportBlock(
            ssrc: ssrc, fractionLost: UInt8(clamping: fraction),
            cumulativeLost: Int32(min(max(lost, -0x80_0000), 0x7F_FFFF)),
            highestSequenceNumber: UInt32(truncatingIfNeeded: highest), jitter: jitter,
            lastSenderReport: 0, delaySinceLastSenderReport: 0)
        if let report = lastSenderReport {
            block.lastSenderReport = UInt32(truncatingIfNeeded: report.ntp >> 16)
            block.delaySinceLastSenderReport = NTPInterval.compact(
                nanoseconds: now.nanoseconds(since: report.at))
        }
        return block
    }

    /// What was expected and lost, before repair, since the last call.
    package mutating func takeLoss() -> LossInterval {
        let now = Tally(expected: expected, received: originals)
        defer { examined = now }
        let expected = now.expected - examined.expected
        let lost = expected - (now.received - examined.received)
        return LossInterval(expected: Int(max(expected, 0)), lost: Int(min(max(lost, 0), max(expected, 0))))
    }
}

// MARK: - The sender's clock

extension ReceiveStream {
    /// Takes in a sender report for this SSRC.
    /// - Returns: false if the report is bogus: OBS begins with one before it has sent anything, and a sender
    ///   that does not know its time says 0.
    package mutating func receive(_ report: SenderReport, at now: MonotonicTime) -> Bool {
        guard report.ssrc == ssrc, report.ntpTime != 0, !report.isPlaceholder else { return false }
        lastSenderReport = ReceivedSenderReport(
            ntp: report.ntpTime, rtpTimestamp: report.rtpTimestamp, at: now)
        return true
    }

    /// When the media at `timestamp` was captured, on our clock; nil before the first sender report.
    package func captureTime(ofTimestamp timestamp: UInt32, by clock: SourceClock) -> MonotonicTime? {
        guard let report = lastSenderReport, let time = clock.time(ofNTP: report.ntp) else { return nil }
        let ticks = Int64(Int32(bitPattern: timestamp &- report.rtpTimestamp))
        return time.advanced(byNanoseconds: MediaTicks.nanoseconds(ticks: ticks, clockRate: clockRate))
    }
}
