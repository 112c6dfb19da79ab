import Base
import Ingest
import Net
import Transcoder

/// A decision of the node about a publisher.
enum IngestCommand: Sendable {
    /// The key is valid and the publisher may begin to send.
    case accept
    /// The session exists, and media goes to this inlet.
    case open(IngestInlet)
    /// Viewers need a key frame to begin or to go on; without effect if pictures pass unchanged.
    case makeKeyFrame
    case end(IngestEnd)
}

/// The media of one publisher, whatever protocol brings it; belongs to the entrance's thread.
///
/// It turns the effects of `IngestMedia` into packets for the worker and the transcoder, and into events for the
/// node.
final class IngestReception {
    private let remote: TransportAddress
    /// Must not block.
    private let tell: (IngestEvent) -> Void
    private var media: IngestMedia
    /// Nil until there is a session.
    private var inlet: IngestInlet?
    /// Nil until there is a session, and without a transcoder.
    private var sound: SoundConversion?
    /// Nil until there is a session, and if pictures pass unchanged.
    private var pictures: PictureConversion?
    /// Whether `ended` was reported, after which no other event may be.
    private var hasEnded = false
    /// Whether the formats of the media are known.
    private(set) var hasBegun = false

    /// - Parameters:
    ///   - isDecoding: whether there is a transcoder.
    ///   - seed: a random number.
    init(
        remote: TransportAddress, isDecoding: Bool, seed: UInt64, tell: @escaping (IngestEvent) -> Void
    ) {
        self.remote = remote
        self.tell = tell
        media = IngestMedia(isDecoding: isDecoding, seed: seed)
    }

    var deadline: MonotonicTime? { media.deadline }

    /// Asks the node whether the publisher may send.
    func ask(_ key: Secret<String>) { tell(.asked(key: key, from: remote)) }

    /// Handles media that was received.
    /// - Returns: why the connection has to be closed; nil if it goes on.
    func receive(
        at now: MonotonicTime, _ read: (inout IngestMedia) -> [IngestMedia.Effect]
    ) -> IngestEnd? {
        perform(read(&media), at: now)
    }

    func advance(to now: MonotonicTime) -> IngestEnd? { perform(media.advance(to: now), at: now) }

    /// Begins to pass media on, now that there is a session.
    /// - Returns: why the connection has to be closed; nil if it goes on.
    func open(_ inlet: IngestInlet, at now: MonotonicTime) -> IngestEnd? {
        self.inlet = inlet
        sound = SoundConversion(inlet)
        pictures = PictureConversion(inlet)
        if pictures?.hasOriginal == true { tell(.originalBegun(inlet.session)) }
        return perform(media.open(), at: now)
    }

    func requestKeyFrame() { pictures?.requestKeyFrame() }

    /// Reports measurements of the link.
    func note(_ link: SRTLink) {
        if !hasEnded { tell(.link(link)) }
    }

    /// Ends the jobs and reports the end; later calls have no effect.
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

    /// Passes a picture to viewers unchanged, or to the conversion where there is one.
    private func take(_ picture: IngestPicture, at now: MonotonicTime) -> IngestEnd? {
        guard let pictures else {
            inlet?.send(picture)
            return nil
        }
        pictures.take(picture, at: now)
        guard pictures.isHopeless else { return nil }
        return .unsupported(
            "This video can't be decoded. Set the encoder to H.264 with the profile baseline, main or high.")
    }
}
