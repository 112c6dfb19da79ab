import Base
import Wire

/// Messages that wait for room in the transport: those of stream 0, which controls the rest, before all others, each
/// kind first come, first served.
///
/// Bounded in bytes and messages, each stream and all of them. When it is full, a message that may be lost pushes older
/// ones of its own stream out; any other is refused. A part is kept for stream 0, which controls the rest.
struct SendQueue {
    struct Waiting {
        let message: SCTPMessage
        let since: MonotonicTime

        /// Milliseconds that it still may take; nil if it may take any time.
        func lifetime(at now: MonotonicTime) -> UInt32? {
            guard case .lifetime(let milliseconds) = message.delivery.reliability else { return nil }
            let waited = now.nanoseconds(since: since) / 1_000_000
            return UInt32(clamping: Int64(milliseconds) - waited)
        }
    }

    private let maximumBytes: Int
    private let maximumCount: Int
    private let maximumStreamBytes: Int
    private let reservedBytes: Int
    private let reservedCount: Int
    private var waiting: [Waiting] = []
    /// What stands before it was taken out.
    private var head = 0
    private var bytes = 0
    private var bytesByStream: [UInt16: Int] = [:]
    /// Messages given up before they reached the transport.
    private(set) var dropped = 0

    /// - Parameter reservedPart: one in so many of the bytes and messages is for stream 0 alone.
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

    /// The first that is not too late; those before it are dropped.
    mutating func first(at now: MonotonicTime) -> Waiting? {
        while head < waiting.count {
            let first = waiting[head]
            guard first.lifetime(at: now) == 0 else { return first }
            removeFirst()
            dropped += 1
        }
        return nil
    }

    mutating func removeFirst() {
        guard head < waiting.count else { return }
        account(waiting[head].message, -1)
        head += 1
        guard head == waiting.count || head >= 64, head * 2 >= waiting.count else { return }
        waiting.removeFirst(head)
        head = 0
    }

    private func hasRoom(for message: SCTPMessage) -> Bool {
        let limits = limits(of: message.stream)
        return count < limits.count && bytes + message.bytes.count <= limits.bytes
            && buffered(message.stream) + message.bytes.count <= maximumStreamBytes
    }

    private func limits(of stream: UInt16) -> (bytes: Int, count: Int) {
        guard stream != 0 else { return (maximumBytes, maximumCount) }
        return (maximumBytes - reservedBytes, maximumCount - reservedCount)
    }

    private mutating func makeRoom(for message: SCTPMessage) {
        let limits = limits(of: message.stream)
        let size = message.bytes.count
        var missing = max(
            0, bytes + size - limits.bytes, buffered(message.stream) + size - maximumStreamBytes)
        var surplus = max(0, count + 1 - limits.count)
        remove { candidate in
            guard missing > 0 || surplus > 0, candidate.message.stream == message.stream,
                candidate.message.delivery.reliability != .reliable
            else { return false }
            missing -= candidate.message.bytes.count
            surplus -= 1
            return true
        }
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
