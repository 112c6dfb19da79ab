import Base
import Forwarding
import Recordings
import Transcoder

/// Where a node has done what takes long, for all streams: offers are read, and the transcoder makes previews, pause
/// pictures, recordings, clips, HLS and restreams.
struct NodeDesks: Sendable {
    let offers: OfferDesk
    /// Nil where nothing is decoded.
    let transcoder: TranscoderSupervisor?
    /// Nil where nothing is decoded.
    let previews: PreviewDesk?
    /// Nil where nothing is decoded, or nothing is kept on a disk.
    let recordings: RecordingDesk?
    /// Nil where there are no recordings, or none are to be made.
    let clips: ClipDesk?
    /// Nil where nothing is decoded, or nothing is kept on a disk.
    let pauseShelf: PausePictureShelf?
    /// Nil where nothing is decoded, or neither HLS is made nor a programme sent on.
    let packagings: PackagingDesk?
    /// Nil where nothing is decoded, or no programme is sent on.
    let restreams: RestreamDesk?
    /// Of the taps on tracks that they and compositions have.
    let taps = TapNumbers()
    /// Of publishers whose pictures viewers get made anew.
    let originals = OriginalPictures()

    init(
        _ configuration: NodeConfiguration, workers: WorkerPool, log: Log,
        now: @escaping @Sendable () -> Moment
    ) {
        offers = OfferDesk(negotiator: configuration.negotiator)
        guard let settings = configuration.transcoder else {
            (transcoder, previews, recordings, pauseShelf) = (nil, nil, nil, nil)
            (packagings, restreams, clips) = (nil, nil, nil)
            return
        }
        let transcoder = TranscoderSupervisor(settings, log: log)
        self.transcoder = transcoder
        let post: @Sendable (Int, WorkerCommand) -> Bool = { workers[$0].post($1) }
        previews = PreviewDesk(
            transcoder: transcoder, locator: configuration.locator, limit: configuration.previewMemory,
            taps: taps, now: now, post: post)
        pauseShelf = configuration.pausePictures.map { PausePictureShelf(directory: $0) }
        let workerTaps = WorkerTaps(transcoder: transcoder, numbers: taps, post: post)
        recordings = configuration.recordings.map {
            RecordingDesk($0, transcoder: transcoder, taps: workerTaps, log: log, now: now)
        }
        clips = recordings.flatMap { recordings in
            guard configuration.clipLimit > 0 else { return nil }
            return ClipDesk(
                limit: configuration.clipLimit, recordings: recordings, transcoder: transcoder,
                taps: workerTaps.alongside, log: log, now: now)
        }
        let (limit, targets) = (configuration.packagingLimit, configuration.restreams)
        packagings =
            limit > 0 || targets.limit > 0
            ? PackagingDesk(
                limit: limit, timing: configuration.packagingTiming, dvr: configuration.dvr,
                transcoder: transcoder, taps: workerTaps,
                originals: OriginalTaps(originals: originals, viewers: workerTaps), log: log, now: now)
            : nil
        restreams = packagings.flatMap { packagings in
            targets.limit > 0
                ? RestreamDesk(targets, packagings: packagings, log: log, now: now) : nil
        }
    }
}
