import Base
import Crypto
import Net
import Restream
import Synchronization
import Wire

/// Commands to an RTMP connection.
enum RTMPCommand: Sendable {
    case media(RestreamMedia)
    /// Says goodbye and closes.
    case end
}

/// The state of an RTMP connection, written by its thread and read by the run.
final class RTMPMeter: Sendable {
    struct Values: Equatable, Sendable {
        /// When the server accepted the stream; nil before.
        var live: MonotonicTime?
        /// Bytes handed to the kernel or waiting for it.
        var bytes: UInt64 = 0
        /// Pictures that were left out because the server was too slow.
        var dropped: UInt64 = 0
        /// Why the connection ended, in words; nil while it is open, and if it ended as intended.
        var failure: String?
        var isOver = false
    }

    private let values = Mutex(Values())

    var current: Values { values.withLock { $0 } }

    /// Changes the values under their lock.
    func note(_ change: (inout Values) -> Void) { values.withLock { change(&$0) } }
}

/// The RTMP protocol of a publisher, driven by the thread of its connection.
final class RTMPConversation: StreamConversation {
    typealias Command = RTMPCommand

    private var publisher: RTMPPublisher
    private let meter: RTMPMeter
    /// Bytes that the kernel has not accepted yet; the publisher leaves out pictures when there are many.
    private var waiting = 0

    init(to destination: RTMPDestination, _ meter: RTMPMeter, at now: MonotonicTime) {
        // The random part of the handshake.
        let random = SecureRandom()
        var bytes: [UInt8] = []
        while bytes.count < RTMPHandshake.randomLength { bytes.append(bigEndian: random.next()) }
        publisher = RTMPPublisher(to: destination.address, key: destination.key, random: bytes, at: now)
        self.meter = meter
    }

    var isEstablished: Bool { publisher.phase == .live }
    var isOver: Bool { publisher.isOver }
    var deadline: MonotonicTime? { publisher.deadline }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        publisher.receive(bytes)
        look(at: now)
    }

    func perform(_ command: RTMPCommand, at now: MonotonicTime) {
        switch command {
        case .media(let media): publisher.send(media, waiting: waiting)
        case .end: publisher.end()
        }
        look(at: now)
    }

    func advance(to now: MonotonicTime) {
        publisher.advance(to: now)
        look(at: now)
    }

    /// Takes what is to be sent.
    /// - Parameter waiting: bytes of earlier output that the kernel has not accepted.
    func takeOutput(waiting: Int) -> [UInt8] {
        let output = publisher.takeOutput()
        self.waiting = waiting + output.count
        if !output.isEmpty { meter.note { $0.bytes &+= UInt64(output.count) } }
        return output
    }

    /// Nothing to do: `ended` of the connection notes the reason.
    func lose(at now: MonotonicTime) {}

    /// Copies the publisher's state to the meter.
    private func look(at now: MonotonicTime) {
        let (phase, dropped) = (publisher.phase, publisher.dropped)
        meter.note { values in
            values.dropped = dropped
            if phase == .live, values.live == nil { values.live = now }
            if case .over(let failure?) = phase { values.failure = failure.text }
        }
    }

    /// Starts to connect, on a new thread.
    static func begin(to destination: RTMPDestination, _ meter: RTMPMeter) throws -> OutgoingStream<
        RTMPConversation
    > {
        let address = destination.address
        let target = OutgoingTarget(
            // No restriction here: hosts of the command line are checked when that is parsed.
            host: address.host, port: address.port, isSecure: address.isSecure, permits: { _ in true })
        return try OutgoingStream(to: target, name: "rtmp") { now in
            RTMPConversation(to: destination, meter, at: now)
        } ended: { end in
            meter.note { values in
                values.isOver = true
                // A reason that the protocol gave is more precise than the connection's.
                if values.failure == nil { values.failure = Self.words(for: end) }
            }
        }
    }

    /// The reason for an end; nil if the connection was closed on purpose.
    private static func words(for end: OutgoingEnd) -> String? {
        switch end {
        case .over: nil
        case .unresolved: "no such host"
        case .forbidden: "the address is not allowed"
        case .unreachable(let words): words
        case .insecure(let words): "TLS failed: \(words ?? "the server does not use it here")"
        case .closed: "the server closed the connection"
        case .stalled: "the server stopped accepting media"
        }
    }
}
