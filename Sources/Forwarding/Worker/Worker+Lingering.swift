import Base

/// The end of what other workers relay although no viewer on this worker uses it any more.
extension Worker {
    /// Makes other workers stop relaying what has lingered long enough; the copies are incomplete from then on.
    func endLingering(at now: MonotonicTime) {
        for subject in requests.overdue(at: now) {
            requests.end(subject)
            switch subject {
            case .programme(let stream):
                programmes[stream]?.source?.tracks.forEach { flushIfIdle($0.key, at: now) }
                forgetIfEmpty(stream)
            case .track(let key):
                flushIfIdle(key, at: now)
                forgetCopyIfUnused(key)
            }
        }
    }

    /// Empties a copy that is no longer complete, unless it is used otherwise.
    private func flushIfIdle(_ key: TrackKey, at now: MonotonicTime) {
        guard let copy = relayed.all[key], copy.slots == 0, !requests.isLingering(.track(key)) else { return }
        if let stream = copy.programme, isRelayed(stream) { return }
        copy.track.forgetLayers(at: now)
    }

    /// Whether other workers relay a stream's programme to this one.
    private func isRelayed(_ stream: StreamID) -> Bool {
        programmes[stream]?.followers.isEmpty == false || requests.isLingering(.programme(stream))
    }

    /// Forgets a copy that nothing uses, unless it lingers and is still complete.
    func forgetCopyIfUnused(_ key: TrackKey) {
        guard !requests.isLingering(.track(key)) else { return }
        relayed.forgetIfUnused(key)
    }
}
