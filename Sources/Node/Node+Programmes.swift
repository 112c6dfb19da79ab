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
        workers.post(.setProgramme(stream, tracks))
        programmeChanged(in: stream)
    }

    func programmeTracks(of stream: StreamID) -> [PublishedTrack] {
        (streams[stream] ?? LiveStream()).programmeTracks(inPause: pauses.track(of: stream))
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
