import Base
import Ingest
import Transcoder
import Wire

/// Re-encodes one publisher's pictures in a codec that browsers support, with a job of the transcoder.
///
/// The pictures since the latest key frame are kept, because an encoder by RTMP or SRT cannot be asked for another
/// key frame: when the transcoder's process dies, the next one continues from there. HLS may receive the original
/// pictures too. Belongs to the thread that reads what the publisher sends.
final class PictureConversion {
    /// The largest group of pictures that is kept, in bytes; if it is larger, nothing is kept and a new job waits for
    /// the next key frame.
    private static let keptLimit = 8 << 20

    private let job: IngestJob
    private let codec: InputCodec
    /// The pictures from the latest key frame on; empty before the first one, and beyond the limit.
    private var kept: [TimedPicture] = []
    private var keptBytes = 0
    /// Nil if no player may receive the original pictures.
    private let original: OriginalPicture?
    private let endOriginal: () -> Void

    /// - Returns: nil if there is no transcoder, or if the pictures need no re-encoding.
    init?(_ inlet: IngestInlet) {
        guard let transcoder = inlet.transcoder, let converted = inlet.sources.converted else { return nil }
        codec = InputCodec(converted)
        let (originals, session) = (inlet.originals, inlet.session)
        original =
            inlet.sources.isPassable ? originals.begin(session, converted, by: transcoder) : nil
        endOriginal = { originals.end(session) }
        job = IngestJob(
            .conversion, from: .picture(inlet.session), codec, by: transcoder,
            retryInterval: .milliseconds(250)
        ) { inlet.send(converted: $0) }
    }

    deinit { endOriginal() }

    /// Whether the original pictures are available as well.
    var hasOriginal: Bool { original != nil }

    /// Whether the pictures cannot be decoded.
    var isHopeless: Bool { job.isHopeless }

    /// Requests a key frame from the job: viewers need one to begin or to go on.
    func requestKeyFrame() { job.command([]) }

    /// Feeds a picture to the job, or the whole group of pictures to a job that was just begun.
    func take(_ picture: IngestPicture, at now: MonotonicTime) {
        let timed = TimedPicture(picture: picture, arrival: now)
        keep(timed)
        if job.prepare([], at: now) {
            for picture in kept { feed(picture) }
            // With nothing kept, the job waits for the next key frame.
            if kept.isEmpty { feed(timed) }
        } else {
            feed(timed)
        }
        original?.take(timed, kept)
    }

    /// Adds a picture to its group; a key frame begins a new group.
    private func keep(_ timed: TimedPicture) {
        if timed.picture.isKeyFrame {
            kept.removeAll(keepingCapacity: true)
            keptBytes = 0
        } else if kept.isEmpty {
            return
        }
        keptBytes += timed.picture.size
        guard keptBytes <= Self.keptLimit else { return kept.removeAll() }
        kept.append(timed)
    }

    private func feed(_ timed: TimedPicture) {
        timed.forEachPacket(codec) { job.feed($0, payload: $1) }
    }
}
