import Base
import Wire

/// The state of one received SSRC: which packets arrived, which are missing, and what to report.
///
/// Holds no packets. Packets on an RTX stream are passed to the stream that they repair, with the original sequence
/// number; the RTX stream itself has its own `ReceiveStream` for its reports.
/// - Source: RFC 3550 §6.4.1, A.1, A.3, A.8; RFC 4585 §6.2.1.
package struct ReceiveStream: Sendable {
    /// How losses are repaired.
    package enum Repair: Equatable, Sendable {
        /// NACK was not negotiated, or this is an RTX stream.
        case none
        /// Request packets; what cannot be repaired is given up.
        case packets
        /// Request packets, and a key frame if they cannot be repaired.
        case packetsAndKeyFrames
    }

    /// What kind of arrival a packet is; its index is the sequence number without wraps.
    package enum Arrival: Equatable, Sendable {
        /// Arrived for the first time, without having been requested.
        case new(Int64)
        /// Fills a gap, by RTX, by RED or after it was requested.
        case repaired(Int64)
        case duplicate(Int64)
        /// Too old to be distinguished from a duplicate; must be dropped.
        case tooOld
    }

    /// How a packet reached the server.
    package enum Origin: Equatable, Sendable {
        /// As sent by the publisher, for the first time or again.
        case original
        /// On the RTX stream (RFC 4588).
        case retransmission
        /// Contained in a later packet (RFC 2198): it fills its place, but the network lost the original.
        case redundancy
    }

    /// Losses since the last call, before any repair: what the network did, not what the viewer notices.
    package struct LossInterval: Equatable, Sendable {
        /// By sequence numbers.
        package var expected: Int
        /// Those that had not arrived by then.
        package var lost: Int

        package init(expected: Int, lost: Int) {
            self.expected = expected
            self.lost = lost
        }
    }

    /// Counts of packets by outcome.
    package struct Counters: Equatable, Sendable {
        /// Accepted, repaired ones included.
        package var packets: UInt64 = 0
        /// Of the accepted packets, headers included.
        package var bytes: UInt64 = 0
        /// Arrived late because they were requested, as RTX or as originals.
        package var repaired: UInt64 = 0
        /// Recovered from later packets; not included in the accepted ones.
        package var recovered: UInt64 = 0
        /// Dropped because they had arrived before.
        package var duplicates: UInt64 = 0
        /// Dropped because they were too far behind to be distinguished from duplicates.
        package var tooOld: UInt64 = 0
        /// Jumps and restarts of the sender.
        package var restarts: UInt64 = 0
    }

    /// A source that changes its SSRC begins a new stream.
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

    /// Packets expected before the last jump; and what was expected and received at the last report.
    private var pastExpected: Int64 = 0
    private var reported = Tally()
    /// The same for `takeLoss`, where only originals count as received.
    private var examined = Tally()
    private var originals: Int64 = 0
    /// The latest packets that arrived only within later ones, at most `carriedLimit`.
    private var carried: [Int64] = []
    /// More than a second of audio; an original that arrives later is lost for all purposes.
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

    /// Processes one authenticated packet.
    /// - Parameters:
    ///   - size: bytes of the whole packet, for counters and rates only.
    ///   - origin: how it arrived; `sequenceNumber` and `timestamp` are the original ones.
    ///   - startsKeyFrame: whether it is the first packet of a key frame at which a decoder can start.
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
        if startsKeyFrame, repair != .none { nacks.keyFrameStarted(at: index, head: head) }
        guard origin != .redundancy else {
            noteCarried(index)
            return .repaired(index)
        }
        let isRepair = origin == .retransmission || wasRequested
        count(size: size, timestamp: timestamp, isRepair: isRepair, at: now)
        return isRepair ? .repaired(index) : .new(index)
    }

    /// Notes a packet that a later one carried: reports continue to count it as lost.
    private mutating func noteCarried(_ index: Int64) {
        counters.recovered &+= 1
        if carried.count == Self.carriedLimit { carried.removeFirst() }
        carried.append(index)
    }

    /// Notes the original of a packet that a later one carried: it was not lost, only out of order.
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

    /// Notes a jump: the numbers in between were never sent to us, so they are neither lost nor requested.
    private mutating func restart(expectedBefore: Int64) {
        pastExpected = expectedBefore
        counters.restarts &+= 1
        jitterEstimator.restart()
        if repair != .none { nacks.restart() }
        carried.removeAll(keepingCapacity: true)
    }

    /// Appends the sequence numbers to request from the sender now; they count as requested.
    /// - Parameter rtt: smoothed round-trip time to the sender; nil if not known yet.
    package mutating func nacksDue(at now: MonotonicTime, rtt: Duration?, into numbers: inout [UInt16]) {
        nacks.due(at: now, rtt: rtt, into: &numbers)
    }

    /// Whether a loss will not be repaired, for video whose sender makes key frames on request; true once.
    package mutating func takeKeyFrameDemand() -> Bool {
        nacks.takeKeyFrameDemand() && repair == .packetsAndKeyFrames
    }

    /// Whether a packet after `index` will not be repaired, so that a key frame that begins there is not enough.
    package func hasLoss(after index: Int64) -> Bool { nacks.hasLoss(after: index) }

    /// When `nacksDue` must be called next; nil while no packet is missing.
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

    /// The index of a packet with this number; nil before the first packet, and far from the newest.
    package func index(of sequenceNumber: UInt16) -> Int64? { window.index(of: sequenceNumber) }

    /// Whether a packet before the newest has not arrived; false if it is too old to know.
    package func isMissing(_ index: Int64) -> Bool { window.isMissing(index) }

    /// In ticks of the media clock.
    package var jitter: UInt32 { jitterEstimator.jitter }

    /// Missing packets that were given up.
    package var abandonedCount: UInt64 { nacks.abandonedCount }

    /// Bits per second over about the last second.
    package mutating func bitrate(at now: MonotonicTime) -> Int {
        rate.bitrate(at: now)
    }

    /// The report block to send now; nil before the first packet.
    ///
    /// It counts as sent: the next one covers what comes after. A repaired packet counts as received, so that the
    /// sender learns what is still missing. Deviates from RFC 3550 §6.4.1: a duplicate does not count, because
    /// browsers probe with packets sent before, each of which would hide a real loss.
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

    /// Packets expected and lost, before repair, since the last call.
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
    /// Processes a sender report for this SSRC.
    /// - Returns: false if the report is invalid: OBS begins with one before it has sent anything, and a sender
    ///   without a wall clock reports 0.
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
