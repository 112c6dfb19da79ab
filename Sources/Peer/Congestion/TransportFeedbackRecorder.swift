import Base
import Wire

/// Notes when the packets of a publishing session arrive, and tells the publisher in regular feedback.
///
/// One per session: the transport-wide number counts over media, RTX and probes alike. Memory is fixed. A packet
/// that comes after it was reported missing is reported again together with all that follow it, so that no
/// arrival is ever taken back.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §2, §3.
package struct TransportFeedbackRecorder: Sendable {
    /// Arrivals are remembered this many numbers back from the newest.
    package static let capacity: Int64 = 1_024
    /// Between two feedbacks, in nanoseconds.
    private static let interval: Int64 = 100_000_000
    private static let fastInterval: Int64 = 50_000_000
    /// Packets a second from which the fast interval pays: about 4 Mbit/s.
    private static let fastRate: Int64 = 400
    /// Unreported arrivals that make feedback due at once, so that none falls out of memory.
    private static let pressing = 512
    /// So many packets in a row from too far back are a counter that was set anew.
    private static let restartEvidence = 32

    private var builder: TransportFeedbackBuilder
    /// Nanoseconds of each arrival, at its number's remainder by the capacity; made by the first packet.
    private var times: [Int64] = []
    private static let missing = Int64.min
    private var highest: Int64 = 0
    /// What the next feedback begins with.
    private var start: Int64 = 0
    private var unreported = 0
    private var tooOldInARow = 0
    private var lastFeedback: MonotonicTime?
    private var pace = Self.interval

    /// When `feedbackDue` has to be called next; nil while there is nothing to report.
    package private(set) var deadline: MonotonicTime?
    /// For metrics: packets that were not reported because they came too late or too fast.
    package private(set) var droppedCount: UInt64 = 0
    /// Packets with a number that came before.
    package private(set) var duplicateCount: UInt64 = 0

    /// - Parameter mediaSSRC: any SSRC the publisher sends; it tells transports apart, not streams.
    package init(senderSSRC: UInt32, mediaSSRC: UInt32) {
        builder = TransportFeedbackBuilder(senderSSRC: senderSSRC, mediaSSRC: mediaSSRC)
    }

    /// Known only when the first packet comes.
    package var mediaSSRC: UInt32 {
        get { builder.mediaSSRC }
        set { builder.mediaSSRC = newValue }
    }

    /// Notes an arrival; call it for each authenticated packet that carries the extension.
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

    /// Makes room where a number `capacity` older may still wait for its report.
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

    /// The feedback to send now, if it is time; once returned it counts as sent.
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
