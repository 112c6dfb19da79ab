import Base
import Forwarding
import Peer
import Wire

/// What viewers get of each stream, and who hears that it is something else now: viewers, pause pictures, previews and
/// recordings.
extension Node {
    /// Gives viewers what the stage chose, with the pause picture in the place of its video.
    func giveProgramme(of stream: StreamID) {
        let tracks = programmeTracks(of: stream)
        for worker in workers { _ = worker.post(.setProgramme(stream, tracks)) }
        programmeChanged(in: stream)
    }

    func programmeTracks(of stream: StreamID) -> [PublishedTrack] {
        let room = rooms[stream]
        let chosen = room?.programmeTracks ?? []
        // A composition that has just begun.
        if let room, room.programmeTrack(.video) != nil, room.programmeSession(.video) == nil {
            return chosen
        }
        guard let track = pauses.track(of: stream) else { return chosen }
        return chosen.filter { $0.plan.kind != .video } + [track]
    }

    /// Where what viewers get of a kind comes from: the composition or whoever speaks, where that is the programme, or
    /// its source.
    func source(_ kind: MediaKind, of stream: StreamID, _ record: StreamRecord) -> ProgrammeSource? {
        if let track = rooms[stream]?.programmeTrack(kind) {
            return ProgrammeSource(
                session: rooms[stream]?.programmeSession(kind), track: track, mid: track.plan.mid,
                worker: track.key.worker)
        }
        guard let session = record.publisher.flatMap({ sessions[$0] }),
            let source = session.plan.sources.first(where: { $0.kind == kind })
        else { return nil }
        return ProgrammeSource(session: session.id, mid: source.mid, worker: session.worker)
    }

    /// Has everybody look again who shows or keeps a stream's programme, soon.
    ///
    /// To be called wherever it may have become another, or its picture may have gone or come: nobody asks.
    func programmeChanged(in stream: StreamID) {
        inboxes.programmes.put(ProgrammeChange(stream: stream))
        // By itself, because what comes of it may wait for a disk.
        inboxes.recorded.put(ProgrammeChange(stream: stream))
    }

    func followProgramme(of stream: StreamID) async {
        await followPause(of: stream)
        await followPreview(of: stream)
    }

    /// Has those look again who wait for a time.
    func advancePauses(to now: MonotonicTime) {
        for stream in pauses.due(at: now) { programmeChanged(in: stream) }
    }
}
