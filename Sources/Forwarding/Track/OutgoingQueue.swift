import Base

/// The packets of one layer on their way out: those that wait for company, and those that are leaving now.
///
/// Holds no bytes: they lie in the layer's history until the last viewer has got them. `FanOut` asks what is due.
struct OutgoingQueue {
    private let isVideo: Bool
    private var waiting: [ForwardedPacket] = []
    /// Sent to one viewer after the other right now.
    private(set) var leaving: [ForwardedPacket] = []
    /// The first of those that begins a key frame.
    private(set) var leavingKeyFrame: Int?
    private var waitingBytes = 0
    /// When the first packet that waits came.
    private(set) var waitingSince = MonotonicTime.zero
    private var span = FrameSpan()
    /// Whether what waits must leave with this batch: a slot begins with it.
    private var isUrgent = false

    /// What may wait, in bytes: small enough for any history to hold it.
    private static let limit = 32 * 1_024

    init(isVideo: Bool) {
        self.isVideo = isVideo
    }

    /// Whether nothing waits.
    var isEmpty: Bool { waiting.isEmpty }

    /// Whether so much waits that it has to leave now.
    var isFull: Bool { waitingBytes >= Self.limit }

    /// Notes a packet that came, whether anybody gets it or not.
    mutating func note(marker: Bool, at now: MonotonicTime) {
        span.note(marker: marker, at: now)
    }

    /// Lets a packet wait.
    /// - Parameter size: in bytes.
    mutating func append(_ packet: ForwardedPacket, size: Int, at now: MonotonicTime) {
        if waiting.isEmpty {
            waitingSince = now
            waitingBytes = 0
        }
        waiting.append(packet)
        waitingBytes += size
    }

    /// What waits, or comes next, leaves with this batch.
    mutating func hurry() {
        isUrgent = true
    }

    /// The source is another one: nobody gets what waits.
    mutating func removeWaiting() {
        waiting.removeAll(keepingCapacity: true)
    }

    /// Whether what waits should leave now, where packets may wait so many nanoseconds.
    func isDue(after longestWait: Int64, at now: MonotonicTime) -> Bool {
        guard let last = waiting.last else { return false }
        return isUrgent || isVideo && last.marker || now >= dueTime(after: longestWait)
    }

    /// When packets that wait should leave, unless more come.
    func dueTime(after longestWait: Int64) -> MonotonicTime {
        isVideo
            ? span.dueTime(since: waitingSince, longestWait: longestWait)
            : waitingSince.advanced(byNanoseconds: longestWait)
    }

    /// Lets what waits leave; `end` has to follow.
    /// - Parameter history: where the packets lie; those of pictures are made equally long there.
    /// - Returns: whether there is anything.
    mutating func begin(in history: inout PacketHistory) -> Bool {
        guard !waiting.isEmpty else { return false }
        isUrgent = false
        // Swapped, not copied, so that both arrays keep their room.
        swap(&leaving, &waiting)
        leavingKeyFrame = isVideo ? leaving.firstIndex(where: \.startsKeyFrame) : nil
        if isVideo { Equalizer.equalize(&leaving) { history.pad($0, by: $1) } }
        for index in leaving.indices {
            let range = history.range(of: leaving[index].sequenceNumber)
            // Empty for what is no longer there.
            leaving[index].place =
                range.map { $0.lowerBound..<($0.upperBound + leaving[index].padding) } ?? 0..<0
        }
        return true
    }

    /// Everybody has got what left.
    mutating func end() {
        leaving.removeAll(keepingCapacity: true)
    }
}
