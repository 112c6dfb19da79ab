import Base
import Peer
import Wire

/// Spatial layers of a track with a single encoding, which are chosen like simulcast layers.
extension Slot {
    /// The highest spatial layer allowed, regardless of the path; nil where there is nothing to choose.
    func bestSpatialLayer(of layer: TrackLayer) -> Int? {
        guard layer.isOnly, !layer.spatial.isEmpty else { return nil }
        // Chromium does not decode AV1 with more than one spatial layer without descriptors, which tell it which
        // frames belong together.
        guard !layer.spatial.areDescribed || plan.extensions.dependencyDescriptor != nil else { return 0 }
        return layer.spatial.best(choice, isThinned: isThinned)
    }

    /// The highest spatial layer to send as soon as possible; `.max` for all present and future ones.
    func spatialTarget(of layer: TrackLayer) -> UInt8 {
        guard let best = bestSpatialLayer(of: layer) else { return .max }
        let target =
            switch grant {
            case .spatial(let granted): choice.isOnlyBest ? best : min(granted, best)
            case .thinned(layer.index): 0
            case .best, .layer, .thinned, .nothing: best
            }
        return target < layer.spatial.sizes.count - 1 ? UInt8(clamping: target) : .max
    }

    /// The highest spatial layer that is sent now; nil where there is nothing to choose.
    func servedSpatialLayer(of layer: TrackLayer) -> Int? {
        guard bestSpatialLayer(of: layer) != nil else { return nil }
        let limit = layer === current ? timeline.current?.sieve?.limit.spatial : nil
        return min(Int(limit ?? .max), layer.spatial.top)
    }

    /// The size of the picture that is sent; nil while none is, or if its size is unknown.
    var servedResolution: VideoResolution? {
        guard !isStopped, let current else { return nil }
        return current.resolution(upTo: servedSpatialLayer(of: current))
    }

    /// Whether larger pictures will be sent from the publisher's next key frame on.
    var isWaitingForKeyFrame: Bool { timeline.current?.sieve?.isWaitingForKeyFrame ?? false }

    /// Requests the key frame that larger pictures begin with, if they are to be sent.
    func demandLargerPicture(of layer: TrackLayer, at now: MonotonicTime) {
        // A slot that is about to change to another track is not worth a key frame of the old one.
        guard isWaitingForKeyFrame, !isStopped, layer.track === track else { return }
        // A viewer whose path failed with them before can wait longer.
        layer.demandKeyFrame(session.hasFailed(at: now) ? .repetition : .beginning, at: now)
    }
}
