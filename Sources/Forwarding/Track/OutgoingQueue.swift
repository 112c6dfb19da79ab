import Base

/// The outgoing packets of one layer: those that wait for more to join them, and those that are being sent.
///
/// It contains no bytes: they stay in the layer's history until the last viewer has been sent them. `FanOut` asks it
/// what is due.
struct OutgoingQueue {
    private let isVideo: Bool
    private var waiting: [ForwardedPacket] = []
    /// The packets that are being sent to one viewer after another.
    private(set) var leaving: [ForwardedPacket] = []
    /// Index of the first of those that begins a key frame; nil if none does.
    private(set) var leavingKeyFrame: Int?
    private var waitingBytes = 0
    /// When the first waiting packet arrived.
    private(set) var waitingSince = MonotonicTime.zero
    private var span = FrameSpan()
    /// Whether waiting packets must be sent with this batch, because a slot begins with them.
    private var isUrgent = false

    /// Maximum size of the waiting packets, in bytes: small enough for any history to hold them.
    private static let limit = 32 * 1_024

    init(isVideo: Bool) {
        self.isVideo = isVideo
    }

    /// Whether nothing waits.
    var isEmpty: Bool { waiting.isEmpty }

    /// Whether the waiting packets must be sent now because of their size.
    var isFull: Bool { waitingBytes >= Self.limit }

    /// Whether a packet waits: a search, for requests alone.
    func isWaiting(_ sequenceNumber: Int64) -> Bool {
        waiting.contains { $0.sequenceNumber == sequenceNumber }
    }

    /// Notes the time of any packet that arrived, whether it is sent to a viewer or not.
    mutating func note(marker: Bool, at now: MonotonicTime) {
        span.note(marker: marker, at: now)
    }

    /// Adds a packet to those that wait.
    /// - Parameter size: in bytes.
    mutating func append(_ packet: ForwardedPacket, size: Int, at now: MonotonicTime) {
        if waiting.isEmpty {
            waitingSince = now
            waitingBytes = 0
        }
        waiting.append(packet)
        waitingBytes += size
    }

    /// Makes waiting packets, or the next ones, leave with this batch.
    mutating func hurry() {
        isUrgent = true
    }

    /// Drops waiting packets, because their source has been replaced.
    mutating func removeWaiting() {
        waiting.removeAll(keepingCapacity: true)
    }

    /// Whether waiting packets should be sent now.
    /// - Parameter longestWait: how long a packet may wait, in nanoseconds.
    func isDue(after longestWait: Int64, at now: MonotonicTime) -> Bool {
        guard let last = waiting.last else { return false }
        return isUrgent || isVideo && last.marker || now >= dueTime(after: longestWait)
    }

    /// When waiting packets should be sent, unless more arrive.
    func dueTime(after longestWait: Int64) -> MonotonicTime {
        isVideo
            ? span.dueTime(since: waitingSince, longestWait: longestWait)
            : waitingSince.advanced(byNanoseconds: longestWait)
    }

    /// Moves the waiting packets to `leaving`; the caller sends them and then calls `end`.
    /// - Parameter history: contains the packets; video packets are padded to equal lengths in it.
    /// - Returns: whether there are any packets.
    mutating func begin(in history: inout PacketHistory) -> Bool {
        guard !waiting.isEmpty else { return false }
        isUrgent = false
        // Swapped, not copied, so that both arrays keep their capacity.
        swap(&leaving, &waiting)
        leavingKeyFrame = isVideo ? leaving.firstIndex(where: \.startsKeyFrame) : nil
        if isVideo { Equalizer.equalize(&leaving) { history.pad($0, by: $1) } }
        for index in leaving.indices {
            let range = history.range(of: leaving[index].sequenceNumber)
            // Empty for a packet that is no longer in the history.
            leaving[index].place =
                range.map { $0.lowerBound..<($0.upperBound + leaving[index].padding) } ?? 0..<0
        }
        return true
    }

    /// Forgets the packets that were sent to every viewer.
    mutating func end() {
        leaving.removeAll(keepingCapacity: true)
    }
}
