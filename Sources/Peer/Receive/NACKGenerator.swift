import Base

/// Decides which missing packets of one stream to request, and when to repeat a request.
///
/// What cannot be repaired is given up: for video a key frame is then needed instead.
/// - Source: RFC 4585 §6.2.1 (generic NACK); the limits are ours.
package struct NACKGenerator: Sendable {
    /// How many packets are requested, and how often.
    package struct Limits: Equatable, Sendable {
        /// Missing packets that are requested at the same time; a larger gap is not repaired.
        package var maximumOutstanding = 300
        /// Requests for one packet.
        package var maximumTries = 10
        /// A packet is given up at this age, however often it was requested.
        package var maximumAge = Duration.seconds(1)
        /// Time from detecting a gap to the first request, in which reordered packets may still arrive.
        package var reorderingTolerance = Duration.zero
        /// Least time between two requests for a packet, even if the round trip is shorter.
        package var minimumRetry = Duration.milliseconds(20)

        package init() {}
    }

    /// The round-trip time used before one was measured.
    package static let assumedRTT = Duration.milliseconds(100)

    private struct Entry {
        let index: Int64
        let expiry: MonotonicTime
        var nextTry: MonotonicTime
        var tries: Int
    }

    private let limits: Limits
    /// Ascending by index.
    private var entries: [Entry] = []
    /// Whether a repair was given up; reset by `takeKeyFrameDemand` or a key frame.
    private var needsKeyFrame = false
    /// The newest packet that was given up; nil if none was, or a key frame began after it.
    private var newestLoss: Int64?

    /// When `due` must be called next; may be early after a missing packet arrived, never late.
    package private(set) var deadline: MonotonicTime?
    /// For metrics: missing packets that were given up.
    package private(set) var abandonedCount: UInt64 = 0

    package init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Packets that are missing and not given up.
    package var outstandingCount: Int { entries.count }

    /// Whether a loss will not be repaired; true once for each such loss.
    package mutating func takeKeyFrameDemand() -> Bool {
        defer { needsKeyFrame = false }
        return needsKeyFrame
    }

    /// Adds a gap; the indices must lie above all that were added before.
    package mutating func missing(_ range: Range<Int64>, at now: MonotonicTime) {
        guard !range.isEmpty else { return }
        guard range.count <= limits.maximumOutstanding - entries.count else {
            abandonAll(and: range.count)
            newestLoss = range.upperBound - 1
            return
        }
        let first = now + limits.reorderingTolerance
        let expiry = now + limits.maximumAge
        for index in range {
            entries.append(Entry(index: index, expiry: expiry, nextTry: first, tries: 0))
        }
        deadline = min(deadline ?? first, first)
    }

    /// Notes that a packet arrived; it need not be missing.
    /// - Returns: whether it had been requested.
    package mutating func arrived(_ index: Int64) -> Bool {
        guard let place = position(notBelow: index), entries[place].index == index else { return false }
        let wasRequested = entries.remove(at: place).tries > 0
        if entries.isEmpty { deadline = nil }
        return wasRequested
    }

    /// Whether a packet after `index` was given up, so that a key frame that begins there repairs nothing.
    package func hasLoss(after index: Int64) -> Bool { newestLoss.map { $0 > index } ?? false }

    /// Notes that a key frame begins at `index`: packets missing before it are no longer needed.
    ///
    /// A key frame that was itself repaired may come after a newer loss, which it does not make good.
    /// - Parameter head: how many packets before `index` may belong to the key frame too.
    package mutating func keyFrameStarted(at index: Int64, head: Int64 = 0) {
        if !hasLoss(after: index) {
            needsKeyFrame = false
            newestLoss = nil
        }
        let older = position(notBelow: index - head) ?? entries.count
        guard older > 0 else { return }
        entries.removeFirst(older)
        if entries.isEmpty { deadline = nil }
    }

    /// Gives up everything, because the sender restarted or jumped: no earlier packet will come.
    package mutating func restart() {
        abandonAll(and: 0)
        newestLoss = nil
    }

    /// Appends the sequence numbers to request now; they count as requested.
    package mutating func due(at now: MonotonicTime, rtt: Duration?, into numbers: inout [UInt16]) {
        guard let deadline, now >= deadline else { return }
        var kept = 0
        var next: MonotonicTime?
        for place in entries.indices {
            var entry = entries[place]
            guard now < entry.expiry, entry.tries < limits.maximumTries || now < entry.nextTry else {
                abandonedCount &+= 1
                needsKeyFrame = true
                newestLoss = max(newestLoss ?? entry.index, entry.index)
                continue
            }
            if now >= entry.nextTry {
                numbers.append(UInt16(truncatingIfNeeded: entry.index))
                entry.tries += 1
                entry.nextTry = now + retryInterval(tries: entry.tries, rtt: rtt)
            }
            let wake = min(entry.nextTry, entry.expiry)
            next = min(next ?? wake, wake)
            entries[kept] = entry
            kept += 1
        }
        entries.removeLast(entries.count - kept)
        self.deadline = next
    }

    /// One round trip after the first request, increased by a quarter with each further one.
    private func retryInterval(tries: Int, rtt: Duration?) -> Duration {
        var interval = max(rtt ?? Self.assumedRTT, limits.minimumRetry).wholeNanoseconds
        for _ in 1..<max(tries, 1) { interval = min(interval &+ interval / 4, 10_000_000_000) }
        return .nanoseconds(interval)
    }

    private mutating func abandonAll(and further: Int) {
        abandonedCount &+= UInt64(entries.count + further)
        entries.removeAll(keepingCapacity: true)
        deadline = nil
        needsKeyFrame = true
    }

    /// Position of the first entry at or above `index`, by binary search; nil if all are below.
    private func position(notBelow index: Int64) -> Int? {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].index < index { low = middle + 1 } else { high = middle }
        }
        return low < entries.count ? low : nil
    }
}
