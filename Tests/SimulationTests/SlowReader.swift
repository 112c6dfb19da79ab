import Base
import Peer
import Wire

@testable import Net

/// What lies between a worker and a client over TCP, in virtual time: the connection's queue at the server, the
/// kernel's room behind it, and a reader who takes so much a second, or nothing.
///
/// What the client sends goes its usual way; nothing of what is read gets lost or out of order.
final class SlowReader {
    static let step = Duration.milliseconds(5)
    /// Bytes that the kernel takes although the reader does not.
    private static let kernelRoom = 64 << 10
    /// As connections are looked at.
    private static let measurement = Duration.milliseconds(20)

    private(set) var queue = FrameQueue()
    private var kernel: [UInt8] = []
    private var frames = FrameReader()
    /// Where the worker is.
    private(set) var source: TransportAddress?
    private var destination: TransportAddress?
    private(set) var next = MonotonicTime.distantFuture
    private var nextMeasurement = MonotonicTime.zero
    /// In bytes a second; 0 is a reader who sleeps.
    var rate: Int
    /// Until what was read is known to be.
    let roundTrip: Duration
    /// What the reader may take by its rate, in thousandths of a byte.
    private var credit = 0
    /// Bytes that were read, and when.
    private var reads: [(time: MonotonicTime, total: UInt64)] = []
    private var read: UInt64 = 0
    private var acknowledged: UInt64 = 0
    private(set) var malformed = 0

    init(rate: Int, roundTrip: Duration = .milliseconds(40)) {
        self.rate = rate
        self.roundTrip = roundTrip
    }

    func append(_ datagram: SimulatedNetwork.Datagram, at now: MonotonicTime) {
        source = datagram.source
        destination = datagram.destination
        queue.append(datagram.bytes.span, at: now)
        fill(at: now)
        if next == .distantFuture { next = now + Self.step }
    }

    /// Gives the kernel what it has room for.
    private func fill(at now: MonotonicTime) {
        guard kernel.count < Self.kernelRoom else { return }
        // As a connection does before it writes again.
        queue.expire(at: now)
        while kernel.count < Self.kernelRoom, !queue.isEmpty {
            let room = Self.kernelRoom - kernel.count
            _ = queue.send { bytes in
                kernel += bytes.prefix(room)
                return min(bytes.count, room)
            }
        }
    }

    /// Reads as much as it may in one step.
    func read(at now: MonotonicTime) -> [SimulatedNetwork.Datagram] {
        guard next <= now, let source, let destination else { return [] }
        next = now + Self.step
        credit += rate * Int(Self.step.wholeNanoseconds / 1_000_000)
        let count = min(credit / 1_000, kernel.count)
        // A reader that has read everything does not save up its rate.
        credit = count == kernel.count ? 0 : credit - count * 1_000
        guard count > 0 else { return [] }
        var found: [SimulatedNetwork.Datagram] = []
        do {
            try frames.read(kernel[..<count]) { datagram in
                found.append(
                    .init(
                        source: source, destination: destination,
                        bytes: (0..<datagram.count).map { datagram[$0] }))
            }
        } catch {
            malformed += 1
        }
        kernel.removeFirst(count)
        read += UInt64(count)
        reads.append((now, read))
        fill(at: now)
        return found
    }

    /// How far the connection has come, when it is time to tell.
    func measure(at now: MonotonicTime) -> StreamBacklog? {
        guard now >= nextMeasurement else { return nil }
        nextMeasurement = now + Self.measurement
        let before = acknowledged
        while let first = reads.first, first.time + roundTrip <= now {
            acknowledged = first.total
            reads.removeFirst()
        }
        let waiting = queue.waiting + Int(queue.bytesSent - acknowledged)
        guard waiting > 0 || acknowledged > before else { return nil }
        return StreamBacklog(acknowledged: acknowledged, waiting: waiting, roundTrip: roundTrip)
    }
}
