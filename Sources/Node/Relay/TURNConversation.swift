import Base
import Net
import TURN
import Wire

/// A client's connection to a TURN port, in the clear or within TLS, on the port's thread.
final class TURNConversation: StreamConversation {
    enum Command: Sendable {
        /// Something came to the client's address.
        case deliver
    }

    /// How long a connection may be without an allocation.
    private static let idleTime = Duration.seconds(10)
    /// What may wait for a client that reads slowly before pictures are left out, and before all is.
    private static let roomForPictures = 96 << 10
    private static let room = 192 << 10
    /// Sound, checks and reports are smaller.
    private static let smallDatagram = 400

    private let client: TURNClient
    private var reader = TURNFrameReader()
    private var output: [UInt8] = []
    private var hasArrivals = false
    private var now: MonotonicTime
    private var idleEnd: MonotonicTime?
    private(set) var isOver = false

    /// - Parameter client: whose messages come by it.
    init(_ client: TURNClient, at now: MonotonicTime) {
        self.client = client
        self.now = now
        idleEnd = now + Self.idleTime
    }

    var isEstablished: Bool { client.hasAllocation }
    var deadline: MonotonicTime? { [client.deadline, idleEnd].compactMap(\.self).min() }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        self.now = now
        do throws(WireError) {
            try reader.read(bytes) { message in
                client.receive(message, at: now) { output += $0 }
            }
        } catch {
            isOver = true
        }
        watchIdleness(at: now)
    }

    func perform(_ command: Command, at now: MonotonicTime) {
        self.now = now
        hasArrivals = true
    }

    func advance(to now: MonotonicTime) {
        self.now = now
        client.advance(to: now)
        watchIdleness(at: now)
        if let idleEnd, idleEnd <= now { isOver = true }
    }

    private func watchIdleness(at now: MonotonicTime) {
        if client.hasAllocation {
            idleEnd = nil
        } else if idleEnd == nil {
            idleEnd = now + Self.idleTime
        }
    }

    func takeOutput(waiting: Int) -> [UInt8] {
        if hasArrivals {
            hasArrivals = false
            client.deliver(
                into: &output, isStream: true, at: now,
                hasRoom: { length, written in
                    let limit = length <= Self.smallDatagram ? Self.room : Self.roomForPictures
                    return waiting + written <= limit
                })
        }
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) { client.close() }
}
