import Base
import CLinux
import Glibc
import Peer
import Wire

/// One TCP connection of a worker: a stream of frames in each direction, each frame a datagram.
final class TCPConnection {
    /// The address by which sessions know it; its transport is `tcp`.
    let address: TransportAddress
    /// Its token in the worker's epoll instance for TCP.
    let token: UInt32
    /// Whether epoll currently watches for room to write.
    var watchesWritable = false
    /// Whether it is listed to be flushed at the end of the batch.
    var isDirty = false
    /// Whether it is listed for the regular reports of its backlog.
    var isMeasured = false
    /// When it is closed unless a session has its address; nil once a session had.
    var deadline: MonotonicTime?
    /// Whether the kernel accepted nothing at the last attempt.
    private(set) var isBlocked = false
    /// When the kernel last accepted bytes, or nothing waited.
    private(set) var lastProgress: MonotonicTime
    var queue: FrameQueue
    private var reader = FrameReader()
    private let accepted: AcceptedConnection

    var descriptor: Int32 { accepted.descriptor }

    /// - Parameter deadline: when a session must have its address; nil if one has.
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

    /// Receives bytes of the stream, and calls `visit` with each complete datagram.
    /// - Returns: false if the framing is broken.
    func take(_ bytes: ArraySlice<UInt8>, _ visit: (inout MutableSpan<UInt8>) -> Void) -> Bool {
        do throws(WireError) {
            try reader.read(bytes, visit)
            return true
        } catch {
            return false
        }
    }

    /// Sends what waits, as far as the kernel accepts it.
    ///
    /// If it accepted nothing at the last attempt, outdated media is dropped first.
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

    /// How much was acknowledged and how much waits, here and in the kernel; nil if the kernel does not report it.
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
