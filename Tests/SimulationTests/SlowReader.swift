import Base
import Wire

@testable import Net

/// What lies between a worker and a client over TCP, in virtual time: the connection's queue at the server, and a
/// reader who takes so much a second, or nothing.
///
/// What the client sends goes its usual way; nothing of what is read gets lost or out of order.
final class SlowReader {
    static let step = Duration.milliseconds(5)

    private(set) var queue = FrameQueue()
    private var frames = FrameReader()
    private var source: TransportAddress?
    private var destination: TransportAddress?
    private(set) var next = MonotonicTime.distantFuture
    /// In bytes a second; 0 is a reader who sleeps.
    var rate: Int
    private(set) var malformed = 0

    init(rate: Int) {
        self.rate = rate
    }

    func append(_ datagram: SimulatedNetwork.Datagram, at now: MonotonicTime) {
        source = datagram.source
        destination = datagram.destination
        queue.append(datagram.bytes.span, at: now)
        if next == .distantFuture { next = now + Self.step }
    }

    /// Reads as much as it may in one step.
    func read(at now: MonotonicTime) -> [SimulatedNetwork.Datagram] {
        guard next <= now, let source, let destination else { return [] }
        next = now + Self.step
        var credit = rate * Int(Self.step.wholeNanoseconds / 1_000_000) / 1_000
        var found: [SimulatedNetwork.Datagram] = []
        // As a connection does before it writes.
        if credit > 0 { queue.expire(at: now) }
        while credit > 0, !queue.isEmpty {
            var piece: [UInt8] = []
            let taken = queue.send { bytes in
                piece = Array(bytes.prefix(credit))
                return piece.count
            }
            guard taken > 0 else { break }
            credit -= taken
            do {
                try frames.read(piece[...]) { datagram in
                    found.append(
                        .init(
                            source: source, destination: destination,
                            bytes: (0..<datagram.count).map { datagram[$0] }))
                }
            } catch {
                malformed += 1
            }
        }
        return found
    }
}
