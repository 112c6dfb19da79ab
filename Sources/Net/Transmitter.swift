import Base
import CLinux
import Glibc

/// A message about to be passed to the kernel, as tests see it.
package struct OutgoingMessage: Sendable {
    /// Where all its datagrams go.
    package let destination: TransportAddress
    /// Number of datagrams; with more than one the kernel is asked to cut the message (UDP_SEGMENT).
    package let datagrams: Int
    /// Bytes of all its datagrams.
    package let byteCount: Int
}

/// Sends the contents of queues through a socket, and handles the kernel's refusals.
///
/// - Source: sendmmsg(2); udp(7), UDP_SEGMENT; linux/net/ipv4/udp.c, `udp_send_skb`.
struct Transmitter {
    /// Consecutive refusals after which segmentation pauses.
    static let refusalsBeforePause = 8
    /// How long it pauses; after that it is tried again, because a device or a route may have changed.
    static let pauseNanoseconds: Int64 = 10_000_000_000

    let socket: DatagramSocket
    var counters = TrafficCounters()
    /// Answers in the kernel's place, for tests: an errno refuses the message, nil lets it pass.
    var refuse: ((OutgoingMessage) -> Int32?)?

    private var refusals = 0
    private var pausedUntil: MonotonicTime?

    init(socket: DatagramSocket, refuse: ((OutgoingMessage) -> Int32?)? = nil) {
        self.socket = socket
        self.refuse = refuse
    }

    /// Sends everything in `queue` and empties it.
    /// - Returns: false if the socket's buffer is full; the queue then still contains what was not sent.
    mutating func drain(_ queue: inout SendQueue, at now: MonotonicTime) -> Bool {
        while queue.prepareWindow(segmenting: isSegmenting(at: now)) {
            let window = queue.window.indices
            var next = window.lowerBound
            while next < window.upperBound {
                let result = send(&queue, next..<window.upperBound, plainOf: nil)
                if result > 0 {
                    for index in next..<(next + result) { finish(&queue, queue.window[index]) }
                    next += result
                    continue
                }
                let message = queue.window[next]
                guard !Self.isBufferFull(result) else { return false }
                // A refused segment may leave datagram by datagram; a single refused datagram is lost.
                if message.count > 1 {
                    noteRefusal(at: now)
                    guard sendPlain(&queue, message) else { return false }
                } else {
                    drop(1, because: -result)
                    queue.finish(message)
                }
                next += 1
            }
        }
        queue.reset()
        return true
    }

    /// Sends the datagrams of a message that the kernel refused to cut, one by one.
    /// - Returns: false if the socket's buffer is full.
    private mutating func sendPlain(_ queue: inout SendQueue, _ message: SendQueue.Message) -> Bool {
        let range = queue.preparePlain(message)
        var next = range.lowerBound
        while next < range.upperBound {
            let result = send(&queue, next..<range.upperBound, plainOf: message)
            guard !Self.isBufferFull(result) else { return false }
            for _ in 0..<max(result, 1) {
                let length = queue.finishFirst(of: message.destination)
                if result > 0 { count(datagrams: 1, bytes: length) } else { drop(1, because: -result) }
            }
            next += max(result, 1)
        }
        return true
    }

    /// - Parameter plainOf: the message whose datagrams the range contains one by one; nil for a part of the window.
    private mutating func send(
        _ queue: inout SendQueue, _ range: Range<Int>, plainOf whole: SendQueue.Message?
    ) -> Int {
        counters.sendCalls &+= 1
        guard let refuse else { return queue.send(range, through: socket) }
        // Like the kernel, accept the messages before the refused one.
        for index in range {
            let message = whole ?? queue.window[index]
            let outgoing = OutgoingMessage(
                destination: queue.address(of: message), datagrams: whole == nil ? message.count : 1,
                byteCount: message.byteCount / (whole == nil ? 1 : message.count))
            guard let code = refuse(outgoing) else { continue }
            guard index > range.lowerBound else { return -Int(code) }
            return queue.send(range.lowerBound..<index, through: socket)
        }
        return queue.send(range, through: socket)
    }

    private mutating func finish(_ queue: inout SendQueue, _ message: SendQueue.Message) {
        count(datagrams: message.count, bytes: message.byteCount)
        if message.count > 1 {
            counters.segmentedMessagesOut &+= 1
            refusals = 0
        }
        queue.finish(message)
    }

    /// Counts one message that the kernel accepted.
    private mutating func count(datagrams: Int, bytes: Int) {
        counters.messagesOut &+= 1
        counters.datagramsOut &+= UInt64(datagrams)
        counters.bytesOut &+= UInt64(bytes)
    }

    // MARK: Refusals

    private func isSegmenting(at now: MonotonicTime) -> Bool {
        guard socket.canSegment else { return false }
        guard let pausedUntil else { return true }
        return now >= pausedUntil
    }

    /// Counts a refusal to cut a message.
    ///
    /// The reason does not matter (EINVAL: segments exceed the MTU; EIO: no checksum offload; EOPNOTSUPP, EMSGSIZE
    /// and others). The caller sends plain datagrams instead; if one of those fails as well, its own error is
    /// counted.
    private mutating func noteRefusal(at now: MonotonicTime) {
        counters.segmentationRefused &+= 1
        refusals += 1
        guard refusals >= Self.refusalsBeforePause else { return }
        refusals = 0
        pausedUntil = now.advanced(byNanoseconds: Self.pauseNanoseconds)
    }

    private static func isBufferFull(_ result: Int) -> Bool {
        result == 0 || result == -Int(EAGAIN) || result == -Int(EWOULDBLOCK)
    }

    private mutating func drop(_ datagrams: Int, because code: Int) {
        let number = UInt64(datagrams)
        switch Int32(truncatingIfNeeded: code) {
        case EMSGSIZE: counters.droppedTooLarge &+= number
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL, EAFNOSUPPORT, EPERM, EACCES,
            ECONNREFUSED:
            counters.droppedUnreachable &+= number
        case ENOBUFS, ENOMEM: counters.droppedBufferFull &+= number
        default: counters.droppedOther &+= number
        }
    }
}
