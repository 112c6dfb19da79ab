import Base
import CLinux
import Glibc
import Peer
import Wire

/// One TCP connection of a worker: a stream in each direction, cut into datagrams.
final class TCPConnection {
    /// As the sessions know it.
    let address: TransportAddress
    let token: UInt32
    /// What the worker's poll instance knows.
    var watchesWritable = false
    /// Whether it waits for its turn to send.
    var isDirty = false
    /// Whether it is told from time to time how far it has come.
    var isMeasured = false
    /// Nil once a session knew it.
    var deadline: MonotonicTime?
    /// The kernel took nothing at the last attempt.
    private(set) var isBlocked = false
    /// When the kernel last took something, or nothing waited.
    private(set) var lastProgress: MonotonicTime
    var queue: FrameQueue
    private var reader = FrameReader()
    private let accepted: AcceptedConnection

    var descriptor: Int32 { accepted.descriptor }

    /// - Parameter deadline: until when a session must know it; nil if one does.
    init(
        _ accepted: AcceptedConnection, token: UInt32, deadline: MonotonicTime?, limits: FrameQueue.Limits,
        at now: MonotonicTime
    ) {
        self.accepted = accepted
        address = accepted.remote
        self.deadline = deadline
        self.token = token
        queue = FrameQueue(limits)
        lastProgress = now
    }

    /// Takes bytes of the stream in.
    /// - Returns: false if they are no framing.
    func take(_ bytes: ArraySlice<UInt8>, _ visit: (inout MutableSpan<UInt8>) -> Void) -> Bool {
        do throws(WireError) {
            try reader.read(bytes, visit)
            return true
        } catch {
            return false
        }
    }

    /// Sends what waits, as far as the kernel takes it.
    /// - Returns: false if the connection is broken.
    func flush(at now: MonotonicTime) -> Bool {
        if isBlocked { queue.expire(at: now) } else { lastProgress = now }
        while !queue.isEmpty {
            let result = unsafe queue.send { bytes in
                unsafe Int(clinux_stream_send(descriptor, bytes.baseAddress, Int32(clamping: bytes.count)))
            }
            guard result > 0 else {
                isBlocked = result == 0 || result == -Int(EAGAIN) || result == -Int(ENOBUFS)
                return isBlocked
            }
            lastProgress = now
        }
        isBlocked = false
        lastProgress = now
        return true
    }

    /// How far it has come; nil if the kernel does not tell.
    var backlog: StreamBacklog? {
        var found = clinux_backlog()
        guard unsafe clinux_stream_backlog(descriptor, &found) == 0 else { return nil }
        let unacknowledged = max(Int(found.unacknowledged), 0)
        return StreamBacklog(
            acknowledged: queue.bytesSent - min(UInt64(unacknowledged), queue.bytesSent),
            waiting: queue.waiting + unacknowledged,
            roundTrip: found.round_trip < 0 ? nil : .microseconds(found.round_trip))
    }
}
