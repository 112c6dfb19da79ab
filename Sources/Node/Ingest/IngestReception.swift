import Base
import Ingest
import Net
import Transcoder

/// What the node decided about a publisher.
enum IngestCommand: Sendable {
    case accept
    case open(IngestInlet)
    /// Viewers cannot begin, or go on, without one; nothing where pictures go on as they come.
    case makeKeyFrame
    case end(IngestEnd)
}

/// What becomes of one publisher's media, whatever protocol brings it; used by the entrance's thread.
final class IngestReception {
    private let remote: TransportAddress
    private let tell: (IngestEvent) -> Void
    private var media: IngestMedia
    private var inlet: IngestInlet?
    /// Nil without a session, and where nothing is decoded.
    private var sound: SoundConversion?
    /// Nil without a session, and where pictures go on as they come.
    private var pictures: PictureConversion?
    private var hasEnded = false
    /// Whether what comes is known.
    private(set) var hasBegun = false

    /// - Parameter seed: random.
    init(
        remote: TransportAddress, isDecoding: Bool, seed: UInt64, tell: @escaping (IngestEvent) -> Void
    ) {
        self.remote = remote
        self.tell = tell
        media = IngestMedia(isDecoding: isDecoding, seed: seed)
    }

    var deadline: MonotonicTime? { media.deadline }

    /// Somebody wants to publish.
    func ask(_ key: Secret<String>) { tell(.asked(key: key, from: remote)) }

    /// Takes in what came.
    /// - Returns: why the publisher has to be sent away; nil where it has not.
    func receive(
        at now: MonotonicTime, _ read: (inout IngestMedia) -> [IngestMedia.Effect]
    ) -> IngestEnd? {
        perform(read(&media), at: now)
    }

    func advance(to now: MonotonicTime) -> IngestEnd? { perform(media.advance(to: now), at: now) }

    /// There is a session.
    func open(_ inlet: IngestInlet, at now: MonotonicTime) -> IngestEnd? {
        self.inlet = inlet
        sound = SoundConversion(inlet)
        pictures = PictureConversion(inlet)
        if pictures?.hasOriginal == true { tell(.originalBegun(inlet.session)) }
        return perform(media.open(), at: now)
    }

    func requestKeyFrame() { pictures?.requestKeyFrame() }

    /// What the link is like by which it comes.
    func note(_ link: SRTLink) {
        if !hasEnded { tell(.link(link)) }
    }

    /// Nothing more comes, and nothing more is told.
    func finish(because reason: IngestEnd) {
        guard !hasEnded else { return }
        hasEnded = true
        (inlet, sound, pictures) = (nil, nil, nil)
        tell(.ended(reason, from: remote))
    }

    private func perform(_ effects: [IngestMedia.Effect], at now: MonotonicTime) -> IngestEnd? {
        guard !hasEnded else { return nil }
        for effect in effects {
            switch effect {
            case .begin(let formats):
                hasBegun = true
                tell(.begun(formats))
            case .picture(let picture):
                if let reason = take(picture, at: now) { return reason }
            case .soundFormat(let configuration): sound?.configure(configuration)
            case .sound(let frame): sound?.take(frame, at: now)
            case .notice(let notice): tell(.notice(notice))
            case .report(let report): tell(.report(report))
            case .refuse(let reason): return reason
            }
        }
        return nil
    }

    private func take(_ picture: IngestPicture, at now: MonotonicTime) -> IngestEnd? {
        guard let pictures else {
            inlet?.send(picture)
            return nil
        }
        pictures.take(picture, at: now)
        guard pictures.isHopeless else { return nil }
        return .unsupported(
            "The picture cannot be decoded here: set the encoder to H.264 of profile baseline, main or high.")
    }
}
