import Base
import Crypto
import Net
import Restream
import Synchronization
import Wire

/// What a connection by RTMP is told.
enum RTMPCommand: Sendable {
    case media(RestreamMedia)
    /// Say goodbye, and close.
    case end
}

/// What became of one connection by RTMP, for whoever began it.
final class RTMPMeter: Sendable {
    struct Values: Equatable, Sendable {
        /// When the server took the stream.
        var live: MonotonicTime?
        /// Handed to the kernel, or waiting for it.
        var bytes: UInt64 = 0
        /// Pictures that were left out because the server was too slow.
        var dropped: UInt64 = 0
        /// Why it is over, in words; nil while it is not, and where it ended as it should.
        var failure: String?
        var isOver = false
    }

    private let values = Mutex(Values())

    var current: Values { values.withLock { $0 } }

    func note(_ change: (inout Values) -> Void) { values.withLock { change(&$0) } }
}

/// A publisher's connection by RTMP, on its own thread.
final class RTMPConversation: StreamConversation {
    typealias Command = RTMPCommand

    private var publisher: RTMPPublisher
    private let meter: RTMPMeter
    /// Bytes that the server has not taken yet.
    private var waiting = 0

    init(to destination: RTMPDestination, _ meter: RTMPMeter, at now: MonotonicTime) {
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

    func takeOutput(waiting: Int) -> [UInt8] {
        let output = publisher.takeOutput()
        self.waiting = waiting + output.count
        if !output.isEmpty { meter.note { $0.bytes &+= UInt64(output.count) } }
        return output
    }

    func lose(at now: MonotonicTime) {}

    private func look(at now: MonotonicTime) {
        let (phase, dropped) = (publisher.phase, publisher.dropped)
        meter.note { values in
            values.dropped = dropped
            if phase == .live, values.live == nil { values.live = now }
            if case .over(let failure?) = phase { values.failure = failure.text }
        }
    }

    /// Begins to connect.
    static func begin(to destination: RTMPDestination, _ meter: RTMPMeter) throws -> OutgoingStream<
        RTMPConversation
    > {
        let address = destination.address
        let target = OutgoingTarget(
            host: address.host, port: address.port, isSecure: address.isSecure, permits: { _ in true })
        return try OutgoingStream(to: target, name: "rtmp") { now in
            RTMPConversation(to: destination, meter, at: now)
        } ended: { end in
            meter.note { values in
                values.isOver = true
                if values.failure == nil { values.failure = Self.words(for: end) }
            }
        }
    }

    /// Nil for a connection that nobody wanted any longer.
    private static func words(for end: OutgoingEnd) -> String? {
        switch end {
        case .over: nil
        case .unresolved: "there is no such host"
        case .forbidden: "the address is not permitted"
        case .unreachable(let words): words
        case .insecure(let words): "TLS failed: \(words ?? "the server speaks none here")"
        case .closed: "the server closed the connection"
        case .stalled: "the server takes nothing any more"
        }
    }
}
