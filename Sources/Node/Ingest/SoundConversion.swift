import Base
import Ingest
import Transcoder

/// Has the transcoder make Opus of one publisher's AAC, and begins again when it dies; until then there is no sound.
///
/// Used by the thread that reads what the publisher sends.
final class SoundConversion {
    private let job: IngestJob
    private var configuration: [UInt8] = []

    /// - Returns: nil where nothing is decoded, or no sound comes.
    init?(_ inlet: IngestInlet) {
        guard let transcoder = inlet.transcoder, inlet.sources.audio != nil else { return nil }
        job = IngestJob(
            .sound, from: .sound(inlet.session), .aac, by: transcoder, retryInterval: .seconds(1)
        ) { inlet.send(sound: $0) }
    }

    /// Frames are of this configuration from now on.
    func configure(_ configuration: [UInt8]) {
        self.configuration = configuration
        job.command(configuration)
    }

    func take(_ sound: IngestSound, at now: MonotonicTime) {
        _ = job.prepare(configuration, at: now)
        let packet = InputPacket(
            sequenceNumber: 0, timestamp: sound.timestamp, marker: true, codec: .aac, isEntryPoint: true,
            arrival: now, captured: sound.captured)
        job.feed(packet, payload: sound.bytes.span, atOnce: true)
    }
}
