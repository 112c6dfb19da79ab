import Base
import Peer
import Wire

/// The client's preferences, and the report on what it receives.
extension Session {
    /// Interval at which the quality is evaluated; the client is notified at most this often.
    private static let telling = Duration.seconds(1)

    /// Applies new preferences immediately, as far as the path allows.
    func prefer(_ preferences: DeliveryPreferences, at now: MonotonicTime) {
        guard self.preferences != preferences else { return }
        self.preferences = preferences
        let pictures = slots.filter { $0.plan.kind == .video }
        for slot in pictures { slot.startAfresh() }
        allocate(at: now)
        for slot in pictures { slot.track?.retarget(slot, at: now) }
        nextTelling = now
        tellQuality(at: now)
        requestWake()
    }

    /// Publishes the present quality if it is time, and notes whether the client has to be notified.
    func tellQuality(at now: MonotonicTime) {
        guard now >= nextTelling else { return }
        nextTelling = now + Self.telling
        let quality = quality(at: now)
        gauge.set(quality)
        guard channels.control != nil, quality.isNews(after: toldQuality) else { return }
        toldQuality = quality
        hasNewQuality = true
        requestWake()
    }

    /// The quality that the client should be notified of; nil if there is nothing new.
    func takeQuality() -> DeliveryQuality? {
        guard hasNewQuality else { return nil }
        hasNewQuality = false
        return toldQuality
    }

    /// The present quality, and the reason why the focused picture is not better.
    func quality(at now: MonotonicTime) -> DeliveryQuality {
        var pictures: [DeliveryQuality.Picture] = []
        var cause: DeliveryQuality.Cause?
        for slot in slots where slot.plan.kind == .video {
            guard let track = slot.track else { continue }
            let wanted = track.choices(for: slot, at: now).last
            let best = wanted.flatMap { layer in
                slot.bestSpatialLayer(of: layer).map { min($0, layer.spatial.top) }
            }
            let isPaused = slot.grant == .nothing || !sendsPictures
            let isPreview = seats.contains { $0.isPreview && $0.video === slot }
            let served = slot.isStopped || isPaused ? nil : slot.current
            pictures.append(
                DeliveryQuality.Picture(
                    mid: slot.plan.mid, wanted: wanted?.description(upTo: best, at: now),
                    served: served?.description(
                        upTo: served.flatMap { slot.servedSpatialLayer(of: $0) }, at: now),
                    isPaused: isPaused, isPreview: isPreview))
            // A preview only gets what the other pictures leave, so it does not count. Of several pictures, one that
            // could be better determines the cause.
            if !isPreview, cause == nil || slot.grant != .best { cause = self.cause(of: slot) }
        }
        return DeliveryQuality(
            estimate: path.flatMap { $0.isKnown ? $0.bitrate : nil }, roundTrip: roundTrip.smoothed,
            cause: cause, pictures: pictures)
    }

    private func cause(of slot: Slot) -> DeliveryQuality.Cause {
        if preferences.isAudioOnly || preferences.pin == .low && slot.grant != .nothing { return .pinned }
        guard slot.grant == .best, sendsPictures else {
            guard let path, path.isKnown, !path.isLossy else { return .loss }
            return switch path.cause {
            case .delay: .delay
            case .loss: .loss
            case .application: .application
            }
        }
        if !preferences.isAutomatic { return .pinned }
        return slot.maximumHeight == nil && !slot.isThinned ? .publisher : .application
    }
}

extension TrackLayer {
    /// Describes the layer as the client sees it.
    /// - Parameter spatial: its highest spatial layer; nil where there is nothing to choose.
    fileprivate func description(upTo spatial: Int?, at now: MonotonicTime) -> DeliveryQuality.Layer {
        let size = resolution(upTo: spatial)
        return DeliveryQuality.Layer(
            rid: rid, width: size.map { Int($0.width) }, height: size.map { Int($0.height) },
            bitrate: bitrate(upTo: spatial, at: now))
    }
}
