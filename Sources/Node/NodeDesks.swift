import Base
import Forwarding
import Recordings
import Transcoder

/// The parts of a node that do slow work for all streams, outside the node's actor.
///
/// The offer desk parses offers. The others use the transcoder, and so exist only with one: previews, pause pictures,
/// recordings, clips, HLS and restreams.
struct NodeDesks: Sendable {
    let offers: OfferDesk
    /// Nil if the node has no transcoder.
    let transcoder: TranscoderSupervisor?
    /// Nil if the node has no transcoder.
    let previews: PreviewDesk?
    /// Nil without a transcoder, or without a directory for recordings.
    let recordings: RecordingDesk?
    /// Nil without recordings, or if the limit of clips is 0.
    let clips: ClipDesk?
    /// Nil without a transcoder, or without a directory for pause pictures.
    let pauseShelf: PausePictureShelf?
    /// Nil without a transcoder, or if neither HLS nor restreams are enabled; a restream sends packaged media too.
    let packagings: PackagingDesk?
    /// Nil without `packagings`, or if the limit of restreams is 0.
    let restreams: RestreamDesk?
    /// Numbers the taps of all desks and of compositions, so that no two taps of a node share a number.
    let taps = TapNumbers()
    /// The original pictures of publishers whose viewers get re-encoded ones.
    let originals = OriginalPictures()

    /// - Parameters:
    ///   - workers: which the desks post taps and requests to, without going through the node's actor.
    ///   - now: the node's clock.
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
