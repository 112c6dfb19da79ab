import Base
import Crypto
import Ingest
import Net
import Wire

/// A publisher's connection by RTMP.
///
/// Connects `RTMPSession`, which handles the protocol, with `IngestReception`, which handles the media. Runs on the
/// thread of the port, and for RTMPS inside a `SecuredConversation`.
final class RTMPConversation: StreamConversation {
    typealias Command = IngestCommand

    private let reception: IngestReception
    private var session: RTMPSession
    /// Bytes for the publisher that the server has not taken yet.
    private var output: [UInt8] = []

    /// - Parameters:
    ///   - isDecoding: whether there is a transcoder.
    ///   - tell: called on the port's thread; must not block.
    init(
        remote: TransportAddress, isDecoding: Bool, at now: MonotonicTime,
        tell: @escaping (IngestEvent) -> Void
    ) {
        let random = SecureRandom()
        var bytes: [UInt8] = []
        // For the handshake, which contains random bytes.
        while bytes.count < RTMPHandshake.randomLength { bytes.append(bigEndian: random.next()) }
        session = RTMPSession(random: bytes, isDecoding: isDecoding, at: now)
        reception = IngestReception(remote: remote, isDecoding: isDecoding, seed: random.next(), tell: tell)
    }

    /// Until the key is accepted, a newer connection may take this one's place.
    var isEstablished: Bool { session.isPublishing }
    var isOver: Bool { session.isOver }
    /// The earlier of the protocol's and the media's deadlines.
    var deadline: MonotonicTime? { [session.deadline, reception.deadline].compactMap(\.self).min() }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        perform(session.receive(bytes, at: now), at: now)
    }

    func advance(to now: MonotonicTime) {
        perform(session.advance(to: now), at: now)
        end(because: reception.advance(to: now), at: now)
    }

    /// Performs a decision of the node.
    func perform(_ command: IngestCommand, at now: MonotonicTime) {
        switch command {
        case .accept: perform(session.accept(at: now), at: now)
        case .open(let inlet):
            // The connection may have ended while its session was created.
            guard !isOver else { return }
            end(because: reception.open(inlet, at: now), at: now)
        case .makeKeyFrame: reception.requestKeyFrame()
        case .end(let reason): end(because: reason, at: now)
        }
    }

    /// Little is sent to a publisher, so nothing is left out, however much waits.
    func takeOutput(waiting: Int) -> [UInt8] {
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) { end(because: .byPublisher, at: now) }

    /// Ends the connection if there is a reason; the session sends the publisher a status, and then finishes.
    private func end(because reason: IngestEnd?, at now: MonotonicTime) {
        if let reason { perform(session.end(because: reason), at: now) }
    }

    private func perform(_ effects: [RTMPSession.Effect], at now: MonotonicTime) {
        for effect in effects {
            switch effect {
            case .send(let bytes): output += bytes
            case .publish(let key): reception.ask(key)
            case .metadata(let members): take(at: now) { $0.receive(metadata: members, at: now) }
            case .audio(let bytes, let timestamp):
                take(at: now) { $0.receive(audio: bytes.span, timestamp: timestamp, at: now) }
            case .video(let bytes, let timestamp):
                take(at: now) { $0.receive(video: bytes.span, timestamp: timestamp, at: now) }
            case .finish(let reason): reception.finish(because: reason)
            }
        }
    }

    /// Passes media to the reception, which may find a reason to end the connection.
    private func take(at now: MonotonicTime, _ read: (inout IngestMedia) -> [IngestMedia.Effect]) {
        end(because: reception.receive(at: now, read), at: now)
    }
}
