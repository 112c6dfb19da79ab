import Base

/// Builds feedback packets from the arrivals since the last feedback.
///
/// Remembers where the last one ended, so that every packet is reported once: as arrived, or as missing if a later
/// one arrived before it. A packet that arrives after it was reported missing is reported again, as the draft
/// allows.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
package struct TransportFeedbackBuilder: Sendable {
    /// A packet that arrived and is to be reported.
    package struct Arrival: Equatable, Sendable {
        /// Unwrapped by a `SequenceUnwrapper`.
        package var sequenceNumber: Int64
        /// When it was received.
        package var time: MonotonicTime

        package init(sequenceNumber: Int64, time: MonotonicTime) {
            self.sequenceNumber = sequenceNumber
            self.time = time
        }
    }

    /// Length limit of one feedback packet in bytes, so that it fits into a datagram together with others.
    package static let maximumLength = 1_000
    /// Most missing packets reported before an arrival; a larger gap is a jump of the sender's counter.
    package static let maximumGap: Int64 = 8_191

    /// The receiver that reports.
    package var senderSSRC: UInt32
    /// One of the sender's streams; may be set once the first is known.
    package var mediaSSRC: UInt32
    private var feedbackCount: UInt8 = 0
    /// The first packet not yet reported; `nil` before the first feedback.
    private var next: Int64?

    /// - Parameter mediaSSRC: one of the sender's streams.
    package init(senderSSRC: UInt32, mediaSSRC: UInt32) {
        self.senderSSRC = senderSSRC
        self.mediaSSRC = mediaSSRC
    }

    /// Builds one or more packets that report every arrival.
    ///
    /// - Parameter arrivals: in any order; for duplicates, the earlier time counts.
    package mutating func build(_ arrivals: [Arrival]) -> [TransportFeedback] {
        let ordered = arrivals.sorted {
            ($0.sequenceNumber, $0.time.nanoseconds) < ($1.sequenceNumber, $1.time.nanoseconds)
        }
        var packets: [TransportFeedback] = []
        let spoken = next ?? .min
        var draft: Draft?
        var previous: Int64?
        for arrival in ordered where arrival.sequenceNumber != previous {
            previous = arrival.sequenceNumber
            let ticks = Self.ticks(of: arrival.time)
            if draft?.append(arrival.sequenceNumber, ticks, spoken: spoken) != true {
                if let finished = draft { packets.append(finish(finished)) }
                draft = Draft(base: base(for: arrival.sequenceNumber), arrival.sequenceNumber, ticks)
            }
            next = max(next ?? .min, arrival.sequenceNumber &+ 1)
        }
        if let finished = draft { packets.append(finish(finished)) }
        return packets
    }

    /// The first packet covered by feedback whose first arrival is this one: the first one not yet reported, if it
    /// is close.
    private func base(for sequenceNumber: Int64) -> Int64 {
        guard let next, next <= sequenceNumber, sequenceNumber &- next <= Self.maximumGap else {
            return sequenceNumber
        }
        return next
    }

    private mutating func finish(_ draft: Draft) -> TransportFeedback {
        let count = feedbackCount
        feedbackCount &+= 1
        return TransportFeedback(
            senderSSRC: senderSSRC, mediaSSRC: mediaSSRC,
            baseSequenceNumber: UInt16(truncatingIfNeeded: draft.base),
            statusCount: Int(draft.end &- draft.base), feedbackCount: count,
            referenceTime: draft.referenceTime, arrivals: draft.arrivals)
    }

    /// Rounded down, so that differences do not drift.
    private static func ticks(of time: MonotonicTime) -> Int64 {
        let (quotient, remainder) = time.nanoseconds.quotientAndRemainder(
            dividingBy: TransportFeedback.nanosecondsPerTick)
        return remainder < 0 ? quotient &- 1 : quotient
    }

    /// A feedback packet that is being built.
    private struct Draft {
        let base: Int64
        /// The number after the last arrival.
        var end: Int64
        /// 24 bits, signed: wraps as the field does.
        let referenceTime: Int32
        /// Subtracted from a time to make it relative to the wrapped reference time.
        let origin: Int64
        var arrivals: [TransportFeedback.Arrival] = []
        var lastTicks: Int64
        /// Upper bound in bytes: the fixed part and incomplete chunks at first.
        var length = 36

        init(base: Int64, _ sequenceNumber: Int64, _ ticks: Int64) {
            self.base = base
            end = base
            let reference = ticks >> 8
            referenceTime = Int32(truncatingIfNeeded: (reference << 40) >> 40)
            origin = (reference &- Int64(referenceTime)) &* TransportFeedback.ticksPerReference
            lastTicks = ticks
            record(sequenceNumber, ticks)
        }

        /// Adds an arrival if it fits; otherwise it must begin the next packet.
        /// - Parameter spoken: packets before this number were already reported, and must not be reported missing
        ///   now.
        mutating func append(_ sequenceNumber: Int64, _ ticks: Int64, spoken: Int64) -> Bool {
            guard length < TransportFeedbackBuilder.maximumLength,
                end >= spoken || sequenceNumber == end,
                sequenceNumber &- end <= TransportFeedbackBuilder.maximumGap,
                sequenceNumber &- base < 0x7FFF,
                Int16(exactly: ticks &- lastTicks) != nil
            else { return false }
            record(sequenceNumber, ticks)
            return true
        }

        private mutating func record(_ sequenceNumber: Int64, _ ticks: Int64) {
            arrivals.append(
                TransportFeedback.Arrival(
                    sequenceNumber: UInt16(truncatingIfNeeded: sequenceNumber), ticks: ticks &- origin))
            // Two bytes of time and two bits of status; after a gap also a run and a new vector.
            length &+= sequenceNumber == end ? 3 : 7
            lastTicks = ticks
            end = sequenceNumber &+ 1
        }
    }
}
