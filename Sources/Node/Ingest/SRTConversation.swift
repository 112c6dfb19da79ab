import Base
import Crypto
import Ingest
import Net

/// A publisher's connection by SRT.
///
/// Connects `SRTSession`, which handles the phases of the connection, with `IngestReception`, which handles the media
/// of the MPEG transport stream. Runs on the thread of the port.
final class SRTConversation: SRTServerConversation {
    typealias Command = IngestCommand

    private let reception: IngestReception
    private var session: SRTSession
    /// Splits the transport stream into the frames of its programs.
    private var stream = TransportStreamMedia()

    /// - Parameters:
    ///   - isDecoding: whether there is a transcoder.
    ///   - tell: called on the port's thread; must not block.
    init(
        remote: TransportAddress, isDecoding: Bool, at now: MonotonicTime,
        tell: @escaping (IngestEvent) -> Void
    ) {
        session = SRTSession(at: now)
        reception = IngestReception(
            remote: remote, isDecoding: isDecoding, seed: SecureRandom().next(), tell: tell)
    }

    /// Until the node accepts the publisher, a newer connection may take this one's place.
    var isEstablished: Bool { session.isPublishing }
    var isOver: Bool { session.isOver }
    var deadline: MonotonicTime? { [session.deadline, reception.deadline].compactMap(\.self).min() }

    /// Media that arrives before the publisher is accepted is dropped.
    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        session.receive(at: now)
        guard session.isPublishing else { return }
        end(because: reception.receive(at: now) { stream.receive(bytes, at: now, into: &$0) })
        if reception.hasBegun { session.noteMedia() }
    }

    func advance(to now: MonotonicTime) {
        end(because: session.end(at: now))
        end(because: reception.advance(to: now))
        if reception.hasBegun { session.noteMedia() }
    }

    /// Performs a decision of the node.
    func perform(_ command: IngestCommand, at now: MonotonicTime) {
        switch command {
        case .accept: session.accept(at: now)
        case .open(let inlet):
            // The connection may have ended while its session was created.
            guard !isOver else { return }
            end(because: reception.open(inlet, at: now))
        case .makeKeyFrame: reception.requestKeyFrame()
        case .end(let reason): end(because: reason)
        }
    }

    func note(_ link: SRTLink, at now: MonotonicTime) {
        if session.isPublishing { reception.note(link) }
    }

    /// The library sends whatever the protocol needs.
    func takeOutput(waiting: Int) -> [UInt8] { [] }

    func lose(at now: MonotonicTime) { end(because: .byPublisher) }

    /// Ends the connection if there is a reason; only the first one is reported.
    private func end(because reason: IngestEnd?) {
        guard let reason, session.finish() else { return }
        reception.finish(because: reason)
    }
}
