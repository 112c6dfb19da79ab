import Base
import Crypto
import Net
import Restream
import Synchronization
import Transcoder
import Wire

/// What a target's connection is told.
enum RestreamCommand: Sendable {
    case media(RestreamMedia)
    /// Say goodbye, and close.
    case end
}

/// What comes of one connection, for whoever began it.
final class RestreamMeter: Sendable {
    struct Values: Equatable {
        /// Why it failed, where the target or our end of the protocol said so.
        var failure: RestreamFailure?
        /// Handed to the kernel, or waiting for it.
        var bytes: UInt64 = 0
        /// Pictures that were left out.
        var dropped: UInt64 = 0
    }

    private let values = Mutex(Values())

    var current: Values { values.withLock { $0 } }

    func note(_ change: (inout Values) -> Void) { values.withLock { change(&$0) } }
}

/// A target's connection: what its publisher makes of bytes and media, on the connection's thread.
final class RestreamConversation: StreamConversation {
    typealias Command = RestreamCommand

    private var publisher: RTMPPublisher
    private let meter: RestreamMeter
    private let live: () -> Void
    private var isTold = false
    /// Bytes that the target has not taken yet.
    private var waiting = 0

    /// - Parameter live: called once, when the target takes the stream.
    init(
        to target: RestreamTarget, _ meter: RestreamMeter, at now: MonotonicTime,
        live: @escaping () -> Void
    ) {
        let random = SecureRandom()
        var bytes: [UInt8] = []
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

    func lose(at now: MonotonicTime) {}

    private func look() {
        if isEstablished, !isTold {
            isTold = true
            live()
        }
        if case .over(let failure?) = publisher.phase { meter.note { $0.failure = failure } }
    }
}

extension RestreamFailure {
    /// Nil for a connection that was closed because nobody wanted it any longer.
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
    /// Nil for what only HLS needs.
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
