import Base
import Peer

/// Relayed media that no viewer on this worker uses any more, but that other workers still send.
///
/// A copy of a track is useful to a new viewer only while nothing of it is missing. Viewers come and go. With a
/// complete copy the next one begins immediately with the cached group of pictures, instead of waiting for a key
/// frame.
struct Lingering {
    /// How long relaying continues after the last use.
    static let time = Duration.seconds(10)

    var programmes: [StreamID: MonotonicTime] = [:]
    var tracks: [TrackKey: MonotonicTime] = [:]
    /// When expired entries were last looked for.
    fileprivate var looked = MonotonicTime.zero
}

extension Worker {
    /// Requests a stream from the other workers for its first viewer here.
    func wantProgramme(_ stream: StreamID) {
        guard lingering.programmes.removeValue(forKey: stream) == nil else { return }
        links?.tellAll(.want(stream, true))
    }

    /// Lets a stream linger whose last viewer here has left.
    func letProgrammeLinger(_ stream: StreamID, at now: MonotonicTime) {
        guard links != nil else { return }
        lingering.programmes[stream] = now + Lingering.time
    }

    /// Makes other workers stop relaying what was not used for `Lingering.time`; the copies are incomplete from then
    /// on.
    func endLingering(at now: MonotonicTime) {
        guard !lingering.programmes.isEmpty || !lingering.tracks.isEmpty,
            now.nanoseconds(since: lingering.looked) >= 1_000_000_000
        else { return }
        lingering.looked = now
        // Sorted, so that the order does not depend on hashing.
        let programmesOver = lingering.programmes.filter { $0.value <= now }.keys
        for stream in programmesOver.sorted(by: { $0.description < $1.description }) {
            lingering.programmes[stream] = nil
            links?.tellAll(.want(stream, false))
            programmes[stream]?.source?.tracks.forEach { flushIfIdle($0.key, at: now) }
            forgetIfEmpty(stream)
        }
        let tracksOver = lingering.tracks.filter { $0.value <= now }.keys
        for key in tracksOver.sorted(by: { ($0.worker, $0.track.number) < ($1.worker, $1.track.number) }) {
            lingering.tracks[key] = nil
            links?.tell(.subscribe(key.track, false), to: key.worker)
            flushIfIdle(key, at: now)
            forgetRelayedIfUnused(key)
        }
    }

    /// Empties a copy that is no longer complete, unless it is used otherwise.
    private func flushIfIdle(_ key: TrackKey, at now: MonotonicTime) {
        let isFollowed = programmes.contains { stream, programme in
            (!programme.followers.isEmpty || lingering.programmes[stream] != nil)
                && programme.source?.tracks.contains { $0.key == key } == true
        }
        guard slotUses[key] == nil, lingering.tracks[key] == nil, !isFollowed else { return }
        relayed[key]?.forgetLayers(at: now)
    }
}
