import Base
import Crypto
import Net
import Restream
import Synchronization
import Transcoder
import Wire

/// What the desk sends to a target's connection.
enum RestreamCommand: Sendable {
    case media(RestreamMedia)
    /// Say goodbye and close.
    case end
}

/// Counts of one connection, written on its thread and read by the desk.
final class RestreamMeter: Sendable {
    struct Values: Equatable {
        /// Why the connection failed; nil unless the target, or our side of the protocol, reported a reason.
        var failure: RestreamFailure?
        /// Bytes handed to the connection, including those that wait for the kernel.
        var bytes: UInt64 = 0
        /// Video frames that were left out.
        var dropped: UInt64 = 0
    }

    private let values = Mutex(Values())

    var current: Values { values.withLock { $0 } }

    /// Changes the counts; `change` runs under the lock and must be short.
    func note(_ change: (inout Values) -> Void) { values.withLock { change(&$0) } }
}

/// An RTMP connection to a target: connects the publisher's protocol machine with the socket, on the connection's
/// thread.
final class RestreamConversation: StreamConversation {
    typealias Command = RestreamCommand

    private var publisher: RTMPPublisher
    private let meter: RestreamMeter
    /// Called once, when the target accepts the stream.
    private let live: () -> Void
    private var isTold = false
    /// Bytes that the target has not read yet, by which the publisher decides whether to leave out frames.
    private var waiting = 0

    /// - Parameter live: called once, on the connection's thread, when the target accepts the stream.
    init(
        to target: RestreamTarget, _ meter: RestreamMeter, at now: MonotonicTime,
        live: @escaping () -> Void
    ) {
        let random = SecureRandom()
        var bytes: [UInt8] = []
        // The random part of the handshake; the machine itself draws no random numbers.
        while bytes.count < RTMPHandshake.randomLength { bytes.append(bigEndian: random.next()) }
        publisher = RTMPPublisher(to: target.address, key: target.key, random: bytes, at: now)
        self.meter = meter
        self.live = live
    }

    var isEstablished: Bool { publisher.phase == .live }
    var isOver: Bool { publisher.isOver }
    var deadline: MonotonicTime? { publisher.deadline }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        publisher.receive(bytes)
        look()
    }

    func perform(_ command: RestreamCommand, at now: MonotonicTime) {
        switch command {
        case .media(let media):
            publisher.send(media, waiting: waiting)
            let dropped = publisher.dropped
            meter.note { $0.dropped = dropped }
        case .end: publisher.end()
        }
        look()
    }

    func advance(to now: MonotonicTime) {
        publisher.advance(to: now)
        look()
    }

    func takeOutput(waiting: Int) -> [UInt8] {
        let output = publisher.takeOutput()
        self.waiting = waiting + output.count
        if !output.isEmpty { meter.note { $0.bytes &+= UInt64(output.count) } }
        return output
    }

    // Nothing to do: the stream reports its end to the desk through `ended`.
    func lose(at now: MonotonicTime) {}

    /// Reports what has changed in the machine: the target accepts the stream, or refused it.
    private func look() {
        if isEstablished, !isTold {
            isTold = true
            live()
        }
        if case .over(let failure?) = publisher.phase { meter.note { $0.failure = failure } }
    }
}

extension RestreamFailure {
    /// Maps the end of a connection to a failure; nil if the server closed the connection on purpose.
    init?(_ end: OutgoingEnd) {
        switch end {
        case .over: return nil
        case .unresolved: self = .unresolved
        case .forbidden: self = .forbidden
        case .unreachable(let words): self = .unreachable(words)
        case .insecure(let words): self = .insecure(words)
        case .closed: self = .closed
        case .stalled: self = .stalled
        }
    }
}

extension RestreamMedia {
    /// Converts a report of the packager; nil for reports that only HLS needs.
    init?(_ report: PackagingReport) {
        switch report {
        case .format(let format):
            self = .format(
                RestreamFormat(
                    width: format.resolution.width, height: format.resolution.height,
                    framesPerSecond: format.framesPerSecond, pictureHeader: format.pictureHeader,
                    soundConfiguration: format.soundConfiguration))
        case .sample(let sample):
            let kind: RestreamSample.Kind =
                switch sample.kind {
                case .keyFrame: .keyFrame
                case .picture: .picture
                case .sound: .sound
                }
            self = .sample(
                RestreamSample(
                    kind: kind, number: sample.number, time: sample.time, bytes: sample.bytes))
        case .began, .part: return nil
        }
    }
}
