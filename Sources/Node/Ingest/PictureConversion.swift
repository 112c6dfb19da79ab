import Base
import Ingest
import Transcoder
import Wire

/// Has the transcoder make of one publisher's pictures what browsers show.
///
/// What came since the latest key frame is kept: an encoder cannot be asked for another one, and when the
/// transcoder dies, the next one goes on from there. HLS may have them as they come. Used by the thread that reads what
/// the publisher sends.
final class PictureConversion {
    /// Of what is kept, in bytes; of more nothing is, and a new job waits for a key frame.
    private static let keptLimit = 8 << 20

    private let job: IngestJob
    private let codec: InputCodec
    private var kept: [TimedPicture] = []
    private var keptBytes = 0
    /// Nil where no player takes them as they come.
    private let original: OriginalPicture?
    private let endOriginal: () -> Void

    /// - Returns: nil where nothing is decoded, or no picture comes that has to be.
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

    /// Whether pictures are to be had as they come, too.
    var hasOriginal: Bool { original != nil }

    /// Whether what comes cannot be decoded.
    var isHopeless: Bool { job.isHopeless }

    /// Viewers cannot begin, or go on, without a key frame.
    func requestKeyFrame() { job.command([]) }

    func take(_ picture: IngestPicture, at now: MonotonicTime) {
        let timed = TimedPicture(picture: picture, arrival: now)
        keep(timed)
        if job.prepare([], at: now) {
            for picture in kept { feed(picture) }
            // Without it, a job waits for the next key frame.
            if kept.isEmpty { feed(timed) }
        } else {
            feed(timed)
        }
        original?.take(timed, kept)
    }

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
