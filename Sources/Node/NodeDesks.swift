import Base
import Forwarding
import Recordings
import Transcoder

/// What a node has the transcoder do for all streams: previews, pause pictures, recordings.
struct NodeDesks: Sendable {
    /// Nil where nothing is decoded.
    let transcoder: TranscoderSupervisor?
    /// Nil where nothing is decoded.
    let previews: PreviewDesk?
    /// Nil where nothing is decoded, or nothing is kept on a disk.
    let recordings: RecordingDesk?
    /// Nil where nothing is decoded, or nothing is kept on a disk.
    let pauseShelf: PausePictureShelf?
    /// Of the taps on tracks that they and compositions have.
    let taps = TapNumbers()

    init(
        _ configuration: NodeConfiguration, workers: WorkerPool, log: Log,
        now: @escaping @Sendable () -> Moment
    ) {
        guard let settings = configuration.transcoder else {
            (transcoder, previews, recordings, pauseShelf) = (nil, nil, nil, nil)
            return
        }
        let transcoder = TranscoderSupervisor(settings, log: log)
        self.transcoder = transcoder
        let post: @Sendable (Int, WorkerCommand) -> Bool = { workers[$0].post($1) }
        previews = PreviewDesk(
            transcoder: transcoder, locator: configuration.locator, limit: configuration.previewMemory,
            taps: taps, now: now, post: post)
        pauseShelf = configuration.pausePictures.map { PausePictureShelf(directory: $0) }
        recordings = configuration.recordings.map { [taps] in
            RecordingDesk(
                $0, transcoder: transcoder,
                taps: WorkerTaps(transcoder: transcoder, numbers: taps, post: post), log: log, now: now)
        }
    }
}
