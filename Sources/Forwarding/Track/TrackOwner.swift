import Base
import Peer

/// Represents a track's publisher: receives what viewers need of it.
protocol TrackOwner: AnyObject {
    /// Viewers of a layer need a key frame.
    func keyFrameDemanded(
        of layer: Int, of track: TrackID, for reason: KeyFrameRequester.Reason, at now: MonotonicTime)
    /// The paths of some viewers cannot carry the publisher's encoding; repeated while that is so.
    func renditionNeeded(of track: TrackID, at now: MonotonicTime)
    /// These layers are used; repeated while that is so.
    func layersTaken(_ layers: LayerSet, of track: TrackID, at now: MonotonicTime)
    /// The set of layers that the publisher need not send has changed.
    func restsChanged(of track: Track, at now: MonotonicTime)
}

/// Passes calls on to the worker of the publisher.
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

    /// Does nothing: the publisher's worker decides which layers rest, and notifies the others.
    func restsChanged(of track: Track, at now: MonotonicTime) {}
}
