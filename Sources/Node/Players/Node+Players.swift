import Base
import Forwarding
import Wire

/// What players by WHEP are told of, and what they choose.
extension Node {
    /// Pictures of one session that are looked into: a player has one, and the offer is a stranger's.
    private static let pictureLimit = 4

    /// What a session's player may be told now; nil if there is no such session.
    /// - Parameter hasMedia: whether its workers are asked for the pictures, too.
    package func playerView(of id: SessionID, withMedia hasMedia: Bool) async -> PlayerView? {
        guard let record = live.sessions[id] else { return nil }
        var view = PlayerView(
            isActive: live[record.stream]?.isLive ?? false, viewers: directory[record.stream]?.viewers ?? 0)
        guard hasMedia, let measurements = await ask(worker: record.worker, { .measure(id, $0) }) else {
            return view
        }
        for sending in measurements.sendings.filter({ $0.kind == .video }).prefix(Self.pictureLimit) {
            guard let key = sending.track else {
                view.media.append(PlayerView.Media(mid: sending.mid, encodings: []))
                continue
            }
            let source = await ask(worker: key.worker) { .measureTrack(key.track, $0) }
            view.media.append(
                PlayerView.Media(sending, source: source, quality: measurements.quality))
        }
        return view
    }

    /// Sends a player no more than the encoding that it chose, or what the server finds best again.
    ///
    /// The choice is the upper bound of what is sent, as `maxHeight` is, because a path that does not take it would
    /// stop otherwise. It is kept as a height: a publisher who comes back may call its encodings something else.
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
            guard let extent = encoding.extent else { throw .unknownSize }
            height = extent
        }
        let patch = DeliveryPatch(maximumHeight: height)
        guard let action = live.prefer(patch, by: id, at: now().elapsed) else { throw .unknownSession }
        await perform([action])
    }
}
