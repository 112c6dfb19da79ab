import Base
import Wire

/// Records when the packets of a publishing session arrive, and reports that to the publisher at regular intervals.
///
/// One per session: transport-wide numbers run over media, RTX and probes together. Memory is fixed. A packet that
/// arrives after it was reported missing is reported again together with all that follow it, so that no feedback
/// withdraws an arrival.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §2, §3.
package struct TransportFeedbackRecorder: Sendable {
    /// How many numbers, counted back from the newest, have their arrivals remembered; a power of two.
    package static let capacity: Int64 = 1_024
    /// Nanoseconds between two feedbacks.
    private static let interval: Int64 = 100_000_000
    /// The same at `fastRate` packets a second and more.
    private static let fastInterval: Int64 = 50_000_000
    /// Packets per second from which the shorter interval is worth its overhead: about 4 Mbit/s.
    private static let fastRate: Int64 = 400
    /// Unreported arrivals that make feedback due immediately, so that none leaves the memory first.
    private static let pressing = 512
    /// Consecutive packets from too far back that are taken for a counter that restarted.
    private static let restartEvidence = 32

    private var builder: TransportFeedbackBuilder
    /// Arrival times in nanoseconds, each at its number modulo the capacity; allocated by the first packet.
    private var times: [Int64] = []
    private static let missing = Int64.min
    private var highest: Int64 = 0
    /// The number with which the next feedback begins.
    private var start: Int64 = 0
    private var unreported = 0
    private var tooOldInARow = 0
    private var lastFeedback: MonotonicTime?
    private var pace = Self.interval

    /// When `feedbackDue` must be called next; nil while there is nothing to report.
    package private(set) var deadline: MonotonicTime?
    /// For metrics: packets never reported because they came too late or too fast.
    package private(set) var droppedCount: UInt64 = 0
    /// For metrics: packets whose number had arrived before.
    package private(set) var duplicateCount: UInt64 = 0

    /// - Parameter mediaSSRC: any SSRC that the publisher sends; it identifies the transport, not a stream.
    package init(senderSSRC: UInt32, mediaSSRC: UInt32) {
        builder = TransportFeedbackBuilder(senderSSRC: senderSSRC, mediaSSRC: mediaSSRC)
    }

    /// An SSRC of the publisher; it is known only when the first packet arrives.
    package var mediaSSRC: UInt32 {
        get { builder.mediaSSRC }
        set { builder.mediaSSRC = newValue }
    }

    /// Records an arrival; must be called for each authenticated packet that carries the extension.
    package mutating func record(_ sequenceNumber: UInt16, at now: MonotonicTime) {
        guard !times.isEmpty else {
            times = Array(repeating: Self.missing, count: Int(Self.capacity))
            begin(at: Int64(sequenceNumber), now)
            return
        }
        let step = Int64(
            SequenceNumber.distance(from: UInt16(truncatingIfNeeded: highest), to: sequenceNumber))
        let index = highest &+ step
        if step > 0 {
            tooOldInARow = 0
            moveAhead(to: index)
            note(index, now)
        } else if step > -Self.capacity {
            tooOldInARow = 0
            guard times[Self.slot(index)] == Self.missing else {
                duplicateCount &+= 1
                return
            }
            start = min(start, index)
            note(index, now)
        } else {
            dropTooOld(sequenceNumber, now)
        }
    }

    private mutating func begin(at index: Int64, _ now: MonotonicTime) {
        highest = index
        start = index
        unreported = 0
        note(index, now)
    }

    private mutating func note(_ index: Int64, _ now: MonotonicTime) {
        times[Self.slot(index)] = max(now.nanoseconds, Self.missing + 1)
        unreported += 1
        if unreported >= Self.pressing {
            deadline = min(deadline ?? now, now)
        } else if deadline == nil {
            deadline = now.advanced(byNanoseconds: pace)
        }
    }

    private mutating func moveAhead(to index: Int64) {
        if index - highest >= Self.capacity {
            clear()
        } else {
            for passed in (highest + 1)...index { forget(passed) }
        }
        highest = index
        start = max(start, index - Self.capacity + 1)
    }

    /// Clears the slot of a new number; an arrival a `capacity` older that was not reported yet is dropped.
    private mutating func forget(_ index: Int64) {
        let slot = Self.slot(index)
        let old = index - Self.capacity
        if old >= start, times[slot] != Self.missing {
            droppedCount &+= 1
            unreported -= 1
        }
        times[slot] = Self.missing
    }

    private mutating func clear() {
        droppedCount &+= UInt64(max(unreported, 0))
        unreported = 0
        for slot in times.indices { times[slot] = Self.missing }
    }

    private mutating func dropTooOld(_ sequenceNumber: UInt16, _ now: MonotonicTime) {
        tooOldInARow += 1
        guard tooOldInARow >= Self.restartEvidence else {
            droppedCount &+= 1
            return
        }
        tooOldInARow = 0
        clear()
        let forward = Int64(sequenceNumber &- UInt16(truncatingIfNeeded: highest))
        begin(at: highest &+ forward, now)
    }

    /// Returns the feedback to send now, if it is time; what is returned counts as sent.
    package mutating func feedbackDue(at now: MonotonicTime) -> [TransportFeedback] {
        guard let deadline, now >= deadline, start <= highest else { return [] }
        var arrivals: [TransportFeedbackBuilder.Arrival] = []
        arrivals.reserveCapacity(Int(highest - start + 1))
        for index in start...highest {
            let time = times[Self.slot(index)]
            guard time != Self.missing else { continue }
            arrivals.append(.init(sequenceNumber: index, time: MonotonicTime(nanoseconds: time)))
        }
        if let lastFeedback {
            let elapsed = max(now.nanoseconds(since: lastFeedback), 1_000_000)
            let isFast = Int64(unreported) * 1_000_000_000 / elapsed >= Self.fastRate
            pace = isFast ? Self.fastInterval : Self.interval
        }
        lastFeedback = now
        self.deadline = nil
        unreported = 0
        start = highest + 1
        return builder.build(arrivals)
    }

    private static func slot(_ index: Int64) -> Int {
        Int(truncatingIfNeeded: index & (capacity - 1))
    }
}
