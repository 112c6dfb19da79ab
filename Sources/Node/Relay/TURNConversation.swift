import Base
import Net
import TURN
import Wire

/// A client's TCP or TLS connection to a TURN port, on the port's thread.
///
/// Cuts the byte stream into messages for `TURNClient`, and queues what goes back to the client.
/// - Source: RFC 8656 §12.5 (ChannelData over TCP and TLS).
final class TURNConversation: StreamConversation {
    enum Command: Sendable {
        /// Datagrams have arrived at the client's relayed address.
        case deliver
    }

    /// How long a connection may be without an allocation, so that idle clients do not occupy places.
    private static let idleTime = Duration.seconds(10)
    /// Bytes that may wait for a slow client before large datagrams are dropped, which are mostly video.
    private static let roomForPictures = 96 << 10
    /// Bytes that may wait before all datagrams are dropped.
    ///
    /// Sound and feedback still get through while video is dropped.
    private static let room = 192 << 10
    /// Up to this number of bytes a datagram counts as small: audio, connectivity checks and RTCP reports are.
    private static let smallDatagram = 400

    private let client: TURNClient
    private var reader = TURNFrameReader()
    private var output: [UInt8] = []
    /// Whether datagrams wait at the relayed address.
    ///
    /// They stay there until output is taken, when it is known how much the client has not read.
    private var hasArrivals = false
    /// The time of the latest call: `takeOutput` is not given one.
    private var now: MonotonicTime
    /// When the connection is closed; nil while there is an allocation.
    private var idleEnd: MonotonicTime?
    private(set) var isOver = false

    /// - Parameter client: the client whose messages this connection brings.
    init(_ client: TURNClient, at now: MonotonicTime) {
        self.client = client
        self.now = now
        idleEnd = now + Self.idleTime
    }

    /// An unestablished connection may lose its place to newer ones.
    var isEstablished: Bool { client.hasAllocation }
    var deadline: MonotonicTime? { [client.deadline, idleEnd].compactMap(\.self).min() }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        self.now = now
        do throws(WireError) {
            try reader.read(bytes) { message in
                client.receive(message, at: now) { output += $0 }
            }
        } catch {
            // The framing is lost: nothing after this could be understood.
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

    /// Starts the idle timer when the allocation is gone, and stops it when there is one.
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

    /// Gives the allocation back: over TCP and TLS it ends with its connection.
    func lose(at now: MonotonicTime) { client.close() }
}
