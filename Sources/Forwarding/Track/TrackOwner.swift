import Base
import Peer

/// Whoever speaks for a track's publisher.
protocol TrackOwner: AnyObject {
    func keyFrameDemanded(
        of layer: Int, of track: TrackID, for reason: KeyFrameRequester.Reason, at now: MonotonicTime)
    /// Viewers have no room for what the publisher sends; said again for as long as that is so.
    func renditionNeeded(of track: TrackID, at now: MonotonicTime)
    /// Somebody takes these layers; said again for as long as that is so.
    func layersTaken(_ layers: LayerSet, of track: TrackID, at now: MonotonicTime)
    /// The publisher need not send some layers of a track, or has to send them again.
    func restsChanged(of track: Track, at now: MonotonicTime)
}

/// Speaks to the worker where the publisher is.
final class RemoteTrackOwner: TrackOwner {
    private let links: WorkerLinks
    private let worker: Int

    init(worker: Int, links: WorkerLinks) {
        self.worker = worker
        self.links = links
    }

    func keyFrameDemanded(
        of layer: Int, of track: TrackID, for reason: KeyFrameRequester.Reason, at now: MonotonicTime
    ) {
        links.tell(.demandKeyFrame(track, layer: layer, reason), to: worker)
    }

    func renditionNeeded(of track: TrackID, at now: MonotonicTime) {
        links.tell(.needRendition(track), to: worker)
    }

    func layersTaken(_ layers: LayerSet, of track: TrackID, at now: MonotonicTime) {
        guard !layers.isEmpty else { return }
        links.tell(.takeLayers(track, layers), to: worker)
    }

    /// The original's worker decides, and tells of it.
    func restsChanged(of track: Track, at now: MonotonicTime) {}
}
