import Base
import Crypto
import Ingest
import Net
import Wire

/// A publisher's connection: what its session and its media make of the bytes, on the entrance's thread.
final class RTMPConversation: StreamConversation {
    /// What the node decided.
    enum Command: Sendable {
        case accept
        case open(IngestInlet)
        /// Viewers cannot begin, or go on, without one; nothing where pictures go on as they come.
        case makeKeyFrame
        case end(IngestEnd)
    }

    private let remote: TransportAddress
    private let tell: (IngestEvent) -> Void
    private var session: RTMPSession
    private var media: IngestMedia
    private var inlet: IngestInlet?
    /// Nil without a session, and where nothing is decoded.
    private var sound: SoundConversion?
    /// Nil without a session, and where pictures go on as they come.
    private var pictures: PictureConversion?
    private var output: [UInt8] = []
    private var hasEnded = false

    init(
        remote: TransportAddress, isDecoding: Bool, at now: MonotonicTime,
        tell: @escaping (IngestEvent) -> Void
    ) {
        self.remote = remote
        self.tell = tell
        let random = SecureRandom()
        var bytes: [UInt8] = []
        while bytes.count < RTMPHandshake.randomLength { bytes.append(bigEndian: random.next()) }
        session = RTMPSession(random: bytes, at: now)
        media = IngestMedia(isDecoding: isDecoding, seed: random.next())
    }

    var isEstablished: Bool { session.isPublishing }
    var isOver: Bool { session.isOver }
    var deadline: MonotonicTime? { [session.deadline, media.deadline].compactMap(\.self).min() }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        perform(session.receive(bytes, at: now), at: now)
    }

    func advance(to now: MonotonicTime) {
        perform(session.advance(to: now), at: now)
        perform(media.advance(to: now), at: now)
    }

    func perform(_ command: Command, at now: MonotonicTime) {
        switch command {
        case .accept: perform(session.accept(at: now), at: now)
        case .open(let inlet):
            guard !isOver else { return }
            self.inlet = inlet
            sound = SoundConversion(inlet)
            pictures = PictureConversion(inlet)
            perform(media.open(), at: now)
        case .makeKeyFrame: pictures?.requestKeyFrame()
        case .end(let reason): perform(session.end(because: reason), at: now)
        }
    }

    func takeOutput(waiting: Int) -> [UInt8] {
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) {
        perform(session.end(because: .byPublisher), at: now)
    }

    private func perform(_ effects: [RTMPSession.Effect], at now: MonotonicTime) {
        for effect in effects {
            switch effect {
            case .send(let bytes): output += bytes
            case .publish(let key): tell(.asked(key: key, from: remote))
            case .metadata(let members): perform(media.receive(metadata: members, at: now), at: now)
            case .audio(let bytes, let timestamp):
                perform(media.receive(audio: bytes.span, timestamp: timestamp, at: now), at: now)
            case .video(let bytes, let timestamp):
                perform(media.receive(video: bytes.span, timestamp: timestamp, at: now), at: now)
            case .finish(let reason): finish(reason)
            }
        }
    }

    private func perform(_ effects: [IngestMedia.Effect], at now: MonotonicTime) {
        for effect in effects where !hasEnded {
            switch effect {
            case .begin(let formats): tell(.begun(formats))
            case .picture(let picture): take(picture, at: now)
            case .soundFormat(let configuration): sound?.configure(configuration)
            case .sound(let frame): sound?.take(frame, at: now)
            case .notice(let notice): tell(.notice(notice))
            case .report(let report): tell(.report(report))
            case .refuse(let reason): perform(session.end(because: reason), at: now)
            }
        }
    }

    private func take(_ picture: IngestPicture, at now: MonotonicTime) {
        guard let pictures else {
            inlet?.send(picture)
            return
        }
        pictures.take(picture, at: now)
        guard pictures.isHopeless else { return }
        let text = "The picture cannot be decoded here: set the encoder's profile to baseline, main or high."
        perform(session.end(because: .unsupported(text)), at: now)
    }

    private func finish(_ reason: IngestEnd) {
        guard !hasEnded else { return }
        hasEnded = true
        (inlet, sound, pictures) = (nil, nil, nil)
        tell(.ended(reason, from: remote))
    }
}
