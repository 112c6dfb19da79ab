import Base
import Crypto
import Ingest
import Net

/// A publisher's connection by SRT: what its transport stream makes of the bytes, on the entrance's thread.
final class SRTConversation: SRTServerConversation {
    typealias Command = IngestCommand

    private let reception: IngestReception
    private var session: SRTSession
    private var stream = TransportStreamMedia()

    init(
        remote: TransportAddress, isDecoding: Bool, at now: MonotonicTime,
        tell: @escaping (IngestEvent) -> Void
    ) {
        session = SRTSession(at: now)
        reception = IngestReception(
            remote: remote, isDecoding: isDecoding, seed: SecureRandom().next(), tell: tell)
    }

    var isEstablished: Bool { session.isPublishing }
    var isOver: Bool { session.isOver }
    var deadline: MonotonicTime? { [session.deadline, reception.deadline].compactMap(\.self).min() }

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

    func perform(_ command: IngestCommand, at now: MonotonicTime) {
        switch command {
        case .accept: session.accept(at: now)
        case .open(let inlet):
            guard !isOver else { return }
            end(because: reception.open(inlet, at: now))
        case .makeKeyFrame: reception.requestKeyFrame()
        case .end(let reason): end(because: reason)
        }
    }

    func note(_ link: SRTLink, at now: MonotonicTime) {
        if session.isPublishing { reception.note(link) }
    }

    func takeOutput(waiting: Int) -> [UInt8] { [] }

    func lose(at now: MonotonicTime) { end(because: .byPublisher) }

    private func end(because reason: IngestEnd?) {
        guard let reason, session.finish() else { return }
        reception.finish(because: reason)
    }
}
