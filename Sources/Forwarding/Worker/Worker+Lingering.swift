import Base
import Peer

/// What other workers go on sending although nobody here takes it any more.
///
/// A copy of a track is good for a new viewer only as long as nothing of it is missing. Viewers come and go: the next
/// one begins at once with the group of pictures that the copy kept, where it would else wait for a key frame.
struct Lingering {
    /// Longer than any group of pictures is kept: what comes after it begins with a key frame of its own.
    static let time = Duration.seconds(10)

    var programmes: [StreamID: MonotonicTime] = [:]
    var tracks: [TrackKey: MonotonicTime] = [:]
    /// When it was last looked at what is over.
    fileprivate var looked = MonotonicTime.zero
}

extension Worker {
    /// The first follower came: other workers have to send what they have of the stream.
    func wantProgramme(_ stream: StreamID) {
        guard lingering.programmes.removeValue(forKey: stream) == nil else { return }
        links?.tellAll(.want(stream, true))
    }

    /// The last follower left.
    func letProgrammeLinger(_ stream: StreamID, at now: MonotonicTime) {
        guard links != nil else { return }
        lingering.programmes[stream] = now + Lingering.time
    }

    /// Has other workers stop what has not been taken for long; the copies have gaps from then on.
    func endLingering(at now: MonotonicTime) {
        guard !lingering.programmes.isEmpty || !lingering.tracks.isEmpty,
            now.nanoseconds(since: lingering.looked) >= 1_000_000_000
        else { return }
        lingering.looked = now
        // In an order that hashing has no part in.
        let programmesOver = lingering.programmes.filter { $0.value <= now }.keys
        for stream in programmesOver.sorted(by: { $0.description < $1.description }) {
            lingering.programmes[stream] = nil
            links?.tellAll(.want(stream, false))
            programmes[stream]?.source?.tracks.forEach { flushIfIdle($0.key, at: now) }
        }
        let tracksOver = lingering.tracks.filter { $0.value <= now }.keys
        for key in tracksOver.sorted(by: { ($0.worker, $0.track.number) < ($1.worker, $1.track.number) }) {
            lingering.tracks[key] = nil
            links?.tell(.subscribe(key.track, false), to: key.worker)
            flushIfIdle(key, at: now)
            forgetRelayedIfUnused(key)
        }
    }

    /// Nobody is to begin with a copy that is not kept up any more.
    private func flushIfIdle(_ key: TrackKey, at now: MonotonicTime) {
        let isFollowed = programmes.contains { stream, programme in
            (!programme.followers.isEmpty || lingering.programmes[stream] != nil)
                && programme.source?.tracks.contains { $0.key == key } == true
        }
        guard slotUses[key] == nil, lingering.tracks[key] == nil, !isFollowed else { return }
        relayed[key]?.forgetLayers(at: now)
    }
}
