import Base
import Peer
import Wire

/// Spatial layers of the only picture there is: how many of them are sent, as with the sizes of simulcast.
extension Slot {
    /// The highest that it may have, whatever the path takes; nil where there is nothing to choose.
    func bestSpatialLayer(of layer: TrackLayer) -> Int? {
        guard layer.isOnly, !layer.spatial.isEmpty else { return nil }
        // Chromium decodes nothing of AV1 with more than one where no descriptors tell it which frames belong together.
        guard !layer.spatial.areDescribed || plan.extensions.dependencyDescriptor != nil else { return 0 }
        return layer.spatial.best(choice, isThinned: isThinned)
    }

    /// The highest that is to be sent as soon as that is possible; `.max` for all that there are or will be.
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

    /// The highest that is sent now; nil where there is nothing to choose.
    func servedSpatialLayer(of layer: TrackLayer) -> Int? {
        guard bestSpatialLayer(of: layer) != nil else { return nil }
        let limit = layer === current ? timeline.current?.sieve?.limit.spatial : nil
        return min(Int(limit ?? .max), layer.spatial.top)
    }

    /// Of the picture that is sent; nil while none is, or its size is not known.
    var servedResolution: VideoResolution? {
        guard !isStopped, let current else { return nil }
        return current.resolution(upTo: servedSpatialLayer(of: current))
    }

    /// Whether larger pictures are to be sent as soon as the publisher's key frame comes.
    var isWaitingForKeyFrame: Bool { timeline.current?.sieve?.isWaitingForKeyFrame ?? false }

    /// Asks for the key frame that larger pictures begin with, if they are to be sent.
    func demandLargerPicture(of layer: TrackLayer, at now: MonotonicTime) {
        // What another track sends to a slot that changes to its own is not worth a key frame.
        guard isWaitingForKeyFrame, !isStopped, layer.track === track else { return }
        // Who has had too much of them before can wait for longer.
        layer.demandKeyFrame(session.hasFailed(at: now) ? .repetition : .beginning, at: now)
    }
}
