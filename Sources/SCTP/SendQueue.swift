import Base
import Wire

/// Messages that wait until the transport has room, in order of arrival, but those of stream 0 before all others.
///
/// Stream 0 controls the rest. The queue is bounded in bytes and messages, in total and per stream, and a part of it
/// is reserved for stream 0. If it is full, a message that may be lost displaces older ones of its stream that may be
/// lost as well; any other message is refused.
struct SendQueue {
    /// A message and when it was appended.
    struct Waiting {
        let message: SCTPMessage
        let since: MonotonicTime

        /// Milliseconds that are left to deliver it; nil if its lifetime is not limited.
        ///
        /// A lifetime of 0, which W3C's `maxPacketLifeTime` permits, counts as 1 ms: the message is sent once if there
        /// is room now.
        func lifetime(at now: MonotonicTime) -> UInt32? {
            guard case .lifetime(let milliseconds) = message.delivery.reliability else { return nil }
            let waited = now.nanoseconds(since: since) / 1_000_000
            return UInt32(clamping: max(Int64(milliseconds), 1) - waited)
        }
    }

    private let maximumBytes: Int
    private let maximumCount: Int
    private let maximumStreamBytes: Int
    /// Parts of the limits that only stream 0 may use.
    private let reservedBytes: Int
    private let reservedCount: Int
    private var waiting: [Waiting] = []
    /// Number of messages at the front that were taken out; the array is compacted only now and then.
    private var head = 0
    private var bytes = 0
    private var bytesByStream: [UInt16: Int] = [:]
    /// Messages dropped before they reached the transport.
    private(set) var dropped = 0

    /// - Parameter reservedPart: the divisor: this part of the bytes and messages is reserved for stream 0.
    init(
        maximumBytes: Int, maximumCount: Int, maximumStreamBytes: Int = .max, reservedPart: Int = .max
    ) {
        self.maximumBytes = maximumBytes
        self.maximumCount = maximumCount
        self.maximumStreamBytes = maximumStreamBytes
        reservedBytes = maximumBytes / reservedPart
        reservedCount = maximumCount / reservedPart
    }

    var isEmpty: Bool { head == waiting.count }
    var count: Int { waiting.count - head }

    /// Bytes of one stream that wait.
    func buffered(_ stream: UInt16) -> Int { bytesByStream[stream, default: 0] }

    /// Appends a message.
    ///
    /// - Throws: `.bufferFull` if there is no room, even after older messages that may be lost were dropped.
    mutating func append(_ message: SCTPMessage, at now: MonotonicTime) throws(SCTPSendError) {
        if !hasRoom(for: message), message.delivery.reliability != .reliable { makeRoom(for: message) }
        guard hasRoom(for: message) else { throw .bufferFull }
        let new = Waiting(message: message, since: now)
        if message.stream == 0, let place = waiting[head...].firstIndex(where: { $0.message.stream != 0 }) {
            waiting.insert(new, at: place)
        } else {
            waiting.append(new)
        }
        account(message, 1)
    }

    /// The first message that is not too late; earlier ones are dropped.
    mutating func first(at now: MonotonicTime) -> Waiting? {
        while head < waiting.count {
            let first = waiting[head]
            guard first.lifetime(at: now) == 0 else { return first }
            removeFirst()
            dropped += 1
        }
        return nil
    }

    /// Takes the first message out.
    mutating func removeFirst() {
        guard head < waiting.count else { return }
        account(waiting[head].message, -1)
        head += 1
        guard head == waiting.count || head >= 64, head * 2 >= waiting.count else { return }
        waiting.removeFirst(head)
        head = 0
    }

    /// Whether the limits permit another message.
    private func hasRoom(for message: SCTPMessage) -> Bool {
        let limits = limits(of: message.stream)
        return count < limits.count && bytes + message.bytes.count <= limits.bytes
            && buffered(message.stream) + message.bytes.count <= maximumStreamBytes
    }

    private func limits(of stream: UInt16) -> (bytes: Int, count: Int) {
        guard stream != 0 else { return (maximumBytes, maximumCount) }
        return (maximumBytes - reservedBytes, maximumCount - reservedCount)
    }

    /// Drops older messages of the same stream that may be lost, as many as needed if there are enough.
    private mutating func makeRoom(for message: SCTPMessage) {
        let limits = limits(of: message.stream)
        let size = message.bytes.count
        var missing = max(
            0, bytes + size - limits.bytes, buffered(message.stream) + size - maximumStreamBytes)
        var surplus = max(0, count + 1 - limits.count)
        let older = waiting[head...].filter { Self.mayDrop($0, for: message) }
        // What would not suffice is not dropped: the new message is refused all the same.
        guard older.count >= surplus, older.reduce(0, { $0 + $1.message.bytes.count }) >= missing else {
            return
        }
        remove { candidate in
            guard missing > 0 || surplus > 0, Self.mayDrop(candidate, for: message) else { return false }
            missing -= candidate.message.bytes.count
            surplus -= 1
            return true
        }
    }

    private static func mayDrop(_ candidate: Waiting, for message: SCTPMessage) -> Bool {
        candidate.message.stream == message.stream && candidate.message.delivery.reliability != .reliable
    }

    private mutating func remove(where isUnwanted: (Waiting) -> Bool) {
        var kept: [Waiting] = []
        for candidate in waiting[head...] {
            guard isUnwanted(candidate) else {
                kept.append(candidate)
                continue
            }
            account(candidate.message, -1)
            dropped += 1
        }
        waiting = kept
        head = 0
    }

    private mutating func account(_ message: SCTPMessage, _ sign: Int) {
        bytes += sign * message.bytes.count
        let rest = bytesByStream[message.stream, default: 0] + sign * message.bytes.count
        bytesByStream[message.stream] = rest == 0 ? nil : rest
    }
}
