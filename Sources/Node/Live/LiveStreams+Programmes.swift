import Base
import Forwarding
import Peer
import Recordings
import Stage
import Transcoder
import Wire

/// What viewers receive of each stream, for everything that shows or records it.
extension LiveStreams {
    /// Sets what viewers receive: the stage's choice, with a pause picture in place of its video if one is shown.
    func giveProgramme(of stream: StreamID) -> [LiveAction] {
        [.postToAll(.setProgramme(stream, programmeTracks(of: stream))), .programmeChanged(stream)]
    }

    /// Notifies the audience that the programme is made of other participants' media, or of none.
    func announceProgramme(of stream: StreamID) -> [LiveAction] {
        self[stream]?.announceProgramme(among: sessions) ?? []
    }

    /// The tracks that viewers receive instead of the source's own.
    func programmeTracks(of stream: StreamID) -> [PublishedTrack] {
        (self[stream] ?? LiveStream()).programmeTracks(inPause: productions.pauseTrack(of: stream))
    }

    /// What a stream's composition depends on, besides the speakers on its stage.
    func situation(of stream: StreamID) -> CompositionDesk.Situation {
        let about = directory[stream]
        return CompositionDesk.Situation(
            hasStage: self[stream]?.room != nil, isLive: about?.state == .live,
            isWatched: self[stream]?.audience.isEmpty == false || feed.isWatched(stream)
                || about?.isRecording == true,
            settings: about?.details.composition?.settings ?? CompositionSettings())
    }

    /// Where the picture of a live stream comes from: the composition, the active speaker, or the source.
    ///
    /// Nil for a stream that is backstage. A stream counts as live once workers were told to discard what they have
    /// of its backstage.
    func pictureSource(of stream: StreamID) -> ProgrammeSource? {
        guard let live = self[stream], live.isLive, feed.isLive(stream) else { return nil }
        return live.source(.video, among: sessions)
    }

    /// The card that stands for the picture of a live stream without video; nil if there is a picture.
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

    /// The picture that viewers receive, if it is a single participant's.
    func ownPicture(of stream: StreamID) -> LiveStream.OwnPicture? {
        self[stream]?.ownPicture(among: sessions)
    }

    /// The sources of a recording; nil while the stream has no source.
    func recordedProgramme(of stream: StreamID) -> RecordingDesk.Programme? {
        guard let live = self[stream], live.isLive else { return nil }
        return RecordingDesk.Programme(
            video: recordedPicture(of: stream, live), audio: live.source(.audio, among: sessions))
    }

    /// The preferred codec of the session that sends a live stream's picture; nil if there is no picture.
    func pictureCodec(of stream: StreamID) -> VideoCodec? {
        guard let live = self[stream], live.isLive, let own = live.source(.video, among: sessions) else {
            return nil
        }
        return formats(of: own)?.first?.codec.video
    }

    /// The formats of a source, the preferred one first.
    private func formats(of source: ProgrammeSource) -> [MediaFormat]? {
        source.track?.plan.formats
            ?? source.session.flatMap { sessions[$0] }?.plan.sources.first { $0.mid == source.mid }?.formats
    }

    /// The picture for a recording: the pause picture while viewers receive it, if its codec fits into the file.
    private func recordedPicture(of stream: StreamID, _ live: LiveStream) -> ProgrammeSource? {
        let own = live.source(.video, among: sessions)
        guard let own, let track = productions.pauseTrack(of: stream),
            programmeTracks(of: stream).contains(track)
        else {
            return own
        }
        // Another codec would need another file, so the recording keeps the last picture instead.
        guard formats(of: own)?.first?.codec == track.plan.formats.first?.codec else { return own }
        return ProgrammeSource(track, of: nil)
    }

    /// Tells the stage what a new session's participant has muted.
    ///
    /// A stage forgets the mute states of a participant without sessions, as after a restart; the record does not.
    mutating func restoreMute(for candidate: SessionCandidate, at now: MonotonicTime) -> [LiveAction] {
        guard let id = candidate.request.participant, let member = candidate.clearance?.record?.member(id)
        else {
            return []
        }
        let mute = StageRoom.Mute(audio: member.isAudioMuted, video: member.isVideoMuted)
        return conduct(candidate.request.stream, at: now) { $0.setMute(mute, of: id) }
    }
}
