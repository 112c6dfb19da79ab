import Base
import Forwarding
import Peer
import Recordings
import Stage
import Transcoder
import Wire

/// What viewers get of each stream, for those who show or keep it.
extension LiveStreams {
    /// Gives viewers what the stage chose, with the pause picture in the place of its video.
    func giveProgramme(of stream: StreamID) -> [LiveAction] {
        [.postToAll(.setProgramme(stream, programmeTracks(of: stream))), .programmeChanged(stream)]
    }

    /// Whose picture and sound the programme is made of changed, or whether there is any.
    func announceProgramme(of stream: StreamID) -> [LiveAction] {
        self[stream]?.announceProgramme(among: sessions) ?? []
    }

    /// What viewers get instead of what the source sends.
    func programmeTracks(of stream: StreamID) -> [PublishedTrack] {
        (self[stream] ?? LiveStream()).programmeTracks(inPause: productions.pauseTrack(of: stream))
    }

    /// What a stream's composition depends on besides who is on its stage.
    func situation(of stream: StreamID) -> CompositionDesk.Situation {
        let about = directory[stream]
        return CompositionDesk.Situation(
            hasStage: self[stream]?.room != nil, isLive: about?.state == .live,
            isWatched: self[stream]?.audience.isEmpty == false || feed.isWatched(stream)
                || about?.isRecording == true,
            settings: about?.details.composition?.settings ?? CompositionSettings())
    }

    /// What viewers see of a stream: everybody, or whoever speaks, where that is the programme, or its source.
    ///
    /// Nothing of a backstage: a stream counts from the moment at which the workers were told to let go of what they
    /// have of it.
    func pictureSource(of stream: StreamID) -> ProgrammeSource? {
        guard let live = self[stream], live.isLive, feed.isLive(stream) else { return nil }
        return live.source(.video, among: sessions)
    }

    /// What stands in the place of a picture, where a live stream sends none.
    func card(of stream: StreamID) -> CardRequest? {
        guard let live = self[stream], live.isLive, feed.isLive(stream),
            let source = live.publisher.flatMap({ sessions[$0] }),
            !source.plan.sources.contains(where: { $0.kind == .video }),
            live.room?.programmeTrack(.video) == nil
        else { return nil }
        let about = directory[stream]
        return CardRequest(
            stream: stream.description, title: about?.details.title ?? stream.description,
            host: about?.hostName ?? source.request.name ?? "")
    }

    /// The picture that viewers get, where that is somebody's own.
    func ownPicture(of stream: StreamID) -> LiveStream.OwnPicture? {
        self[stream]?.ownPicture(among: sessions)
    }

    /// What a recording is made of; nil while there is no source.
    func recordedProgramme(of stream: StreamID) -> RecordingDesk.Programme? {
        guard let live = self[stream], live.isLive else { return nil }
        return RecordingDesk.Programme(
            video: recordedPicture(of: stream, live), audio: live.source(.audio, among: sessions))
    }

    /// What whoever sends a live stream's picture offered first; nil while there is none.
    func pictureCodec(of stream: StreamID) -> VideoCodec? {
        guard let live = self[stream], live.isLive, let own = live.source(.video, among: sessions) else {
            return nil
        }
        return formats(of: own)?.first?.codec.video
    }

    private func formats(of source: ProgrammeSource) -> [MediaFormat]? {
        source.track?.plan.formats
            ?? source.session.flatMap { sessions[$0] }?.plan.sources.first { $0.mid == source.mid }?.formats
    }

    /// The pause picture too, while viewers get it, where it fits into the file.
    private func recordedPicture(of stream: StreamID, _ live: LiveStream) -> ProgrammeSource? {
        let own = live.source(.video, among: sessions)
        guard let own, let track = productions.pauseTrack(of: stream),
            programmeTracks(of: stream).contains(track)
        else {
            return own
        }
        // Another codec would begin another file: the last picture stays, then.
        guard formats(of: own)?.first?.codec == track.plan.formats.first?.codec else { return own }
        return ProgrammeSource(session: nil, track: track, mid: track.plan.mid, worker: track.key.worker)
    }
}
