import Base
import Forwarding

/// What WHEP players are shown of their session, and their choice of an encoding.
extension Node {
    /// Video m-lines of one session that are measured.
    ///
    /// A player has one; the number in an offer is up to its sender.
    private static let pictureLimit = 4

    /// Returns what a session's player may be shown now; nil if there is no such session.
    /// - Parameter hasMedia: whether to ask the workers for the encodings, too.
    package func playerView(of id: SessionID, withMedia hasMedia: Bool) async -> PlayerView? {
        guard let record = live.sessions[id] else { return nil }
        var view = PlayerView(
            isActive: live[record.stream]?.isLive ?? false, viewers: directory[record.stream]?.viewers ?? 0)
        // Without an answer from the worker the player still gets the rest.
        guard hasMedia, let measurements = await ask(worker: record.worker, { .measure(id, $0) }) else {
            return view
        }
        for sending in measurements.sendings.filter({ $0.kind == .video }).prefix(Self.pictureLimit) {
            // No track is attached to the slot.
            guard let key = sending.track else {
                view.media.append(PlayerView.Media(mid: sending.mid, encodings: []))
                continue
            }
            // The publisher may be on another worker than the player.
            let source = await ask(worker: key.worker) { .measureTrack(key.track, $0) }
            view.media.append(
                PlayerView.Media(sending, source: source, quality: measurements.quality))
        }
        return view
    }

    /// Limits a player to the encoding that it chose, or removes the limit.
    ///
    /// The choice is an upper bound, as `maxHeight` is: on a path that does not carry the encoding, an exact choice
    /// would stop the video. It is kept as a height, because a publisher who comes back may name its encodings
    /// differently.
    package func choose(_ choice: EncodingChoice, in id: SessionID) async throws(EncodingRefusal) {
        guard let view = await playerView(of: id, withMedia: true) else { throw .unknownSession }
        var media = view.media.first
        if let mid = choice.mid {
            media = view.media.first { $0.mid == mid }
            guard media != nil else { throw .unknownMedia(known: view.media.map(\.mid)) }
        }
        var height: Int?
        if let name = choice.encoding {
            let encodings = media?.encodings.filter(\.isAvailable) ?? []
            guard let encoding = encodings.first(where: { $0.id == name }) else {
                throw .unknownEncoding(known: encodings.map(\.id))
            }
            // The limit is a height, which is unknown before the first key frame.
            guard let extent = encoding.extent else { throw .unknownSize }
            height = extent
        }
        let patch = DeliveryPatch(maximumHeight: height)
        guard let action = live.prefer(patch, by: id, at: now().elapsed) else { throw .unknownSession }
        await perform([action])
    }
}
