import Base
import Ingest
import Transcoder

/// Converts one publisher's AAC to Opus with a job of the transcoder.
///
/// When the transcoder's process dies, the job is begun again; until then there is no audio. Belongs to the thread
/// that reads what the publisher sends.
final class SoundConversion {
    private let job: IngestJob
    /// How the frames are encoded; empty until the publisher has sent it.
    private var configuration: [UInt8] = []

    /// - Returns: nil if there is no transcoder, or if the publisher sends no audio.
    init?(_ inlet: IngestInlet) {
        guard let transcoder = inlet.transcoder, inlet.sources.audio != nil else { return nil }
        job = IngestJob(
            .sound, from: .sound(inlet.session), .aac, by: transcoder, retryInterval: .seconds(1)
        ) { inlet.send(sound: $0) }
    }

    /// Sets the configuration of the frames that follow, for the current job and for later ones.
    func configure(_ configuration: [UInt8]) {
        self.configuration = configuration
        job.command(configuration)
    }

    /// Feeds a frame to the job, which is begun if there is none.
    func take(_ sound: IngestSound, at now: MonotonicTime) {
        _ = job.prepare(configuration, at: now)
        let packet = InputPacket(
            sequenceNumber: 0, timestamp: sound.timestamp, marker: true, codec: .aac, isEntryPoint: true,
            arrival: now, captured: sound.captured)
        // Frames are small and come one at a time, so each is sent without waiting for the writer's thread.
        job.feed(packet, payload: sound.bytes.span, atOnce: true)
    }
}
