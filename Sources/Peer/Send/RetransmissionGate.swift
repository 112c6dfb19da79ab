import Base

/// Decides which of the packets that a viewer requests are sent again.
///
/// A NACK is small and its answer is large, so answers have three bounds: each packet once per round-trip time,
/// nothing from before the last key frame, and a number of bytes in proportion to what the viewer is sent anyway.
/// One per outgoing SSRC; sequence numbers are those the viewer sees.
package struct RetransmissionGate: Sendable {
    /// Whether a packet is sent again; all other cases count as refusals.
    package enum Verdict: Equatable, Sendable {
        case admitted
        /// Never sent.
        case unknown
        /// An answer is already on its way.
        case tooSoon
        /// A later key frame was sent, so the decoder no longer needs the packet.
        case beforeKeyFrame
        /// Retransmissions have used up the allowed bytes.
        case overBudget
    }

    /// A packet at which a decoder can begin.
    package struct KeyFrameStart: Equatable, Sendable {
        /// The extended sequence number that the viewer sees.
        package let sequence: Int64
        /// The timestamp of its frame, as the viewer sees it.
        package let timestamp: UInt32

        package init(sequence: Int64, timestamp: UInt32) {
            self.sequence = sequence
            self.timestamp = timestamp
        }

        /// The packet from which on a viewer that got both needs everything.
        ///
        /// H.264 has several such packets at the head of one frame, parameter sets and the picture; the first of
        /// them counts.
        package func merged(with other: Self?) -> Self {
            guard let other else { return self }
            let isSameFrame = timestamp == other.timestamp
            return (sequence < other.sequence) == isSameFrame ? self : other
        }
    }

    /// How many bytes retransmissions may take.
    package struct Limits: Equatable, Sendable {
        /// Percent of the bytes sent over the last second that may be sent again within a second.
        package var percentOfSent = 50
        /// Retransmitted bytes per second that are always allowed: a handful of packets of a quiet stream.
        package var floor = 32_000
        /// Least time between two answers for one packet, for peers whose RTT is tiny or unknown.
        package var minimumInterval = Duration.milliseconds(10)

        package init() {}
    }

    // Packets whose last retransmission is remembered; a power of two.
    private static let memory = 512
    private let limits: Limits
    private var sent = RateMeter()
    private var repeated = RateMeter()
    /// Extended sequence numbers of the newest and the oldest packet sent.
    private var highest: Int64 = .min
    private var lowest: Int64 = .max
    /// The start of the last key frame.
    private var keyFrame: KeyFrameStart?
    /// When each packet was last sent again; direct-mapped, allocated by the first NACK.
    private var answers: [Answer] = []

    private struct Answer {
        var sequence: Int64?
        var at: MonotonicTime
    }

    package init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Notes a packet sent for the first time; must be called for each.
    /// - Parameters:
    ///   - sequence: the extended sequence number that the viewer sees; its low 16 bits are on the wire.
    ///   - startsKeyFrame: whether a decoder can begin with it.
    ///   - timestamp: that of its frame; nil for a packet that is a frame of its own.
    package mutating func sent(
        _ sequence: Int64, size: Int, startsKeyFrame: Bool, timestamp: UInt32? = nil, at now: MonotonicTime
    ) {
        let start = KeyFrameStart(
            sequence: sequence, timestamp: timestamp ?? UInt32(truncatingIfNeeded: sequence))
        sent(from: sequence, through: sequence, keyFrame: startsKeyFrame ? start : nil, size: size, at: now)
    }

    /// Notes packets that were sent together for the first time.
    /// - Parameter keyFrame: the start of the last key frame that begins with one of them.
    package mutating func sent(
        from first: Int64, through last: Int64, keyFrame start: KeyFrameStart?, size: Int,
        at now: MonotonicTime
    ) {
        sent.add(size, at: now)
        lowest = min(lowest, first)
        highest = max(highest, last)
        if let start { keyFrame = start.merged(with: keyFrame) }
    }

    /// Decides on one requested packet; `.admitted` counts as sent.
    /// - Parameters:
    ///   - size: bytes of the packet when sent again.
    ///   - rtt: the shortest round-trip time to this viewer; nil if not known yet.
    ///   - share: percent of the usual budget; less where retransmissions only add to the loss.
    ///   - ceiling: bytes per second that are never exceeded.
    package mutating func admit(
        _ sequence: Int64, size: Int, rtt: Duration?, share: Int = 100, ceiling: Int = .max,
        at now: MonotonicTime
    ) -> Verdict {
        guard sequence >= lowest, sequence <= highest else { return .unknown }
        if let keyFrame, sequence < keyFrame.sequence { return .beforeKeyFrame }

        if answers.isEmpty {
            answers = Array(repeating: Answer(sequence: nil, at: .zero), count: Self.memory)
        }
        let slot = Int(truncatingIfNeeded: sequence & Int64(Self.memory - 1))
        let last = answers[slot]
        // A slot that another packet still holds refuses too: the bound is kept, and the viewer asks again.
        let interval = max(rtt ?? .zero, limits.minimumInterval)
        if last.sequence != nil, now < last.at + interval { return .tooSoon }
        let budget = limits.floor &+ sent.bytes(at: now) &* limits.percentOfSent / 100
        let allowance = min(share < 100 ? budget &* max(share, 0) / 100 : budget, ceiling)
        guard repeated.bytes(at: now) &+ size <= allowance else { return .overBudget }
        repeated.add(size, at: now)
        answers[slot] = Answer(sequence: sequence, at: now)
        return .admitted
    }
}
