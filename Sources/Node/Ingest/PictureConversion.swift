import Base
import Ingest
import Transcoder
import Wire

/// Has the transcoder make of one publisher's pictures what browsers show.
///
/// What came since the latest key frame is kept: an encoder cannot be asked for another one, and when the
/// transcoder dies, the next one goes on from there. Used by the thread that reads what the publisher sends.
final class PictureConversion {
    /// Of what is kept, in bytes; of more nothing is, and a new job waits for a key frame.
    private static let keptLimit = 8 << 20

    private let job: IngestJob
    private let codec: InputCodec
    private var kept: [(picture: IngestPicture, arrival: MonotonicTime)] = []
    private var keptBytes = 0

    /// - Returns: nil where nothing is decoded, or no picture comes that has to be.
    init?(_ inlet: IngestInlet) {
        guard let transcoder = inlet.transcoder, let converted = inlet.sources.converted else { return nil }
        codec = InputCodec(converted)
        job = IngestJob(
            .conversion, from: .picture(inlet.session), codec, by: transcoder,
            retryInterval: .milliseconds(250)
        ) { inlet.send(converted: $0) }
    }

    /// Whether what comes cannot be decoded.
    var isHopeless: Bool { job.isHopeless }

    /// Viewers cannot begin, or go on, without a key frame.
    func requestKeyFrame() { job.command([]) }

    func take(_ picture: IngestPicture, at now: MonotonicTime) {
        keep(picture, at: now)
        if job.prepare([], at: now) {
            for (picture, arrival) in kept { feed(picture, arrival) }
            // Without it, a job waits for the next key frame.
            if kept.isEmpty { feed(picture, now) }
        } else {
            feed(picture, now)
        }
    }

    private func keep(_ picture: IngestPicture, at now: MonotonicTime) {
        if picture.isKeyFrame {
            kept.removeAll(keepingCapacity: true)
            keptBytes = 0
        } else if kept.isEmpty {
            return
        }
        keptBytes += picture.size
        guard keptBytes <= Self.keptLimit else { return kept.removeAll() }
        kept.append((picture, now))
    }

    private func feed(_ picture: IngestPicture, _ arrival: MonotonicTime) {
        for (index, packet) in picture.packets.enumerated() {
            let input = InputPacket(
                sequenceNumber: 0, timestamp: picture.timestamp, marker: index == picture.packets.count - 1,
                codec: codec, isEntryPoint: picture.isKeyFrame && index == 0, arrival: arrival,
                captured: picture.captured)
            job.feed(input, payload: packet.span.extracting(RTPHeader.fixedLength..<packet.count))
        }
    }
}
