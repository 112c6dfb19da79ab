import Base
import Forwarding
import Net
import Peer
import Stage
import Transcoder

/// Composed programmes: who is fed to the transcoder, and what viewers get of it.
extension Node {
    /// Height of a picture in a composition; a layer that is larger is scaled down for nothing.
    private static func height(of speaker: ComposedSpeaker, among count: Int, _ settings: CompositionSettings)
        -> Int?
    {
        guard !speaker.isScreen else { return nil }
        let rows = count <= 2 ? 1 : count <= 6 ? 2 : 3
        return max(min(settings.height, settings.width) / rows, 180)
    }

    /// Takes in who is to be composed in a stream; nobody for no composition.
    func compose(_ speakers: [ComposedSpeaker], in stream: StreamID) {
        guard transcoder != nil, !isStopping else { return }
        guard !speakers.isEmpty else {
            waitingCompositions[stream] = nil
            restingCompositions[stream] = nil
            compositions[stream]?.speakers = []
            compositions[stream]?.idleSince = MonotonicClock.now()
            return
        }
        guard compositions[stream] != nil || isWatched(stream) else {
            waitingCompositions[stream] = nil
            restingCompositions[stream] = speakers
            return
        }
        restingCompositions[stream] = nil
        guard compositions[stream] != nil || hasRoomForComposition() else {
            if waitingCompositions.updateValue(speakers, forKey: stream) == nil {
                log.warning(
                    "composition.refused", ["stream": stream, "limit": configuration.compositionLimit])
            }
            return
        }
        waitingCompositions[stream] = nil
        if compositions[stream] == nil { openComposition(of: stream) }
        compositions[stream]?.speakers = speakers
        compositions[stream]?.idleSince = nil
        if compositions[stream]?.job == nil {
            beginComposition(of: stream)
        } else {
            feedComposition(of: stream)
        }
        giveComposition(of: stream)
    }

    /// Takes in that the stream's settings changed.
    func updateComposition(of stream: StreamID) {
        guard let settings = directory[stream]?.details.composition?.settings,
            compositions[stream] != nil, compositions[stream]?.settings != settings
        else { return }
        compositions[stream]?.settings = settings
        feedComposition(of: stream)
    }

    /// Whether one more may begin; who is not needed any longer makes room.
    func hasRoomForComposition() -> Bool {
        if compositions.count < configuration.compositionLimit { return true }
        let idle = compositions.first { $0.value.idleSince != nil }?.key
        guard let idle else { return false }
        endComposition(of: idle)
        return true
    }

    private func openComposition(of stream: StreamID) {
        guard
            let inlet = openInjection(
                [ComposedProgramme.audio, ComposedProgramme.video],
                events: { node, event in node.takeComposition(event, of: stream) })
        else { return }
        var programme = ComposedProgramme(inlet: inlet, speakers: [])
        programme.settings = directory[stream]?.details.composition?.settings ?? CompositionSettings()
        compositions[stream] = programme
    }

    private func takeComposition(_ event: InjectionEvent, of stream: StreamID) {
        switch event {
        case .opened(let tracks):
            compositions[stream]?.tracks = tracks
            giveComposition(of: stream)
        case .keyFrameWanted:
            guard let job = compositions[stream]?.job else { return }
            transcoder?.command(job, CompositionCommand(isKeyFrameWanted: true).bytes)
        }
    }

    /// Begins the job, and feeds it.
    func beginComposition(of stream: StreamID) {
        // What is composed backstage, nobody would see.
        guard let programme = compositions[stream], let transcoder, !programme.speakers.isEmpty,
            directory[stream]?.state == .live
        else { return }
        let outlet = CompositionOutlet(programme.inlet) { [compositionEvents] event in
            compositionEvents.continuation.yield((stream, event))
        }
        let scene = CompositionScene(settings: programme.settings, speakers: [])
        let job = transcoder.begin(.composition, CompositionCommand(scene: scene).bytes) { outlet.take($0) }
        guard let job else { return }
        outlet.begin(job)
        compositions[stream]?.job = job
        compositions[stream]?.isPlayable = false
        log.info("composition.begun", ["stream": stream, "speakers": programme.speakers.count])
        feedComposition(of: stream)
    }

    /// Feeds the job what its speakers send, and tells it who they are.
    private func feedComposition(of stream: StreamID) {
        guard var programme = compositions[stream], let job = programme.job, let transcoder else { return }
        let count = programme.speakers.count
        var wanted: [TrackKey: (track: PublishedTrack, session: SessionID, height: Int?)] = [:]
        for speaker in programme.speakers {
            if let video = speaker.video {
                wanted[video.key] = (
                    video, speaker.id.session, Self.height(of: speaker, among: count, programme.settings)
                )
            }
            if let audio = speaker.audio { wanted[audio.key] = (audio, speaker.id.session, nil) }
        }
        var finished: [ComposedProgramme.Feed] = []
        for (key, feed) in programme.feeds {
            guard let want = wanted[key] else {
                programme.feeds[key] = nil
                finished.append(feed)
                continue
            }
            guard want.height != feed.maximumHeight else { continue }
            // Opened anew it would begin with all that the cache holds.
            programme.feeds[key]?.maximumHeight = want.height
            _ = workers[key.worker].post(.limitTap(feed.tap, maximumHeight: want.height))
        }
        for (key, want) in wanted where programme.feeds[key] == nil {
            programme.feeds[key] = feed(
                want.track, of: want.session, to: job, height: want.height, over: transcoder)
        }
        compositions[stream] = programme
        let scene = programme.scene { speaker in
            sessions[speaker.id.session]?.request.name ?? speaker.participant.description
        }
        transcoder.command(job, CompositionCommand(scene: scene).bytes)
        for feed in finished { stopFeeding(feed) }
    }

    /// Has the worker of a track hand its packets to the job.
    private func feed(
        _ track: PublishedTrack, of session: SessionID, to job: JobID, height: Int?,
        over transcoder: TranscoderSupervisor
    ) -> ComposedProgramme.Feed? {
        guard let codec = track.plan.formats.first?.codec,
            let input = transcoder.open(for: job, from: SourceKey(session, of: track), InputCodec(codec))
        else { return nil }
        let tap = taps.next()
        let opening = TapOpening(
            id: tap, target: .track(track), mode: .whole, maximumHeight: height,
            sink: FeedingSink(input, of: transcoder))
        guard workers[track.key.worker].post(.openTap(opening)) else {
            transcoder.close(input)
            return nil
        }
        return ComposedProgramme.Feed(input: input, tap: tap, track: track, maximumHeight: height)
    }

    /// Has the publisher of a track that is composed make a key frame.
    func refresh(_ track: PublishedTrack, in stream: StreamID) {
        guard let feed = compositions[stream]?.feeds[track.key] else { return }
        _ = workers[feed.track.key.worker].post(.demandKeyFrame(feed.tap))
    }

    private func stopFeeding(_ feed: ComposedProgramme.Feed) {
        _ = workers[feed.track.key.worker].post(.closeTap(feed.tap))
        transcoder?.close(feed.input)
    }

    // MARK: What the job tells

    func take(_ event: CompositionEvent, of stream: StreamID) {
        guard let programme = compositions[stream] else { return }
        switch event {
        case .playable(let job):
            guard programme.job == job else { return }
            compositions[stream]?.isPlayable = true
            giveComposition(of: stream)
        case .status(let job, let status):
            guard programme.job == job else { return }
            compositions[stream]?.status = status
            guard status.level != programme.status.level else { return }
            log.warning(
                "composition.level",
                [
                    "stream": stream, "quality": status.level, "fps": status.targetFramesPerSecond,
                    "width": status.width, "height": status.height,
                ])
        case .keyFrameWanted(let job, let input):
            guard programme.job == job, let feed = programme.feeds.values.first(where: { $0.input == input })
            else { return }
            _ = workers[feed.track.key.worker].post(.demandKeyFrame(feed.tap))
        case .lost(let job):
            guard programme.job == job else { return }
            log.warning("composition.lost", ["stream": stream])
            loseJob(of: stream)
            // Viewers see who speaks, until everybody is there again.
            giveComposition(of: stream)
            beginComposition(of: stream)
        }
    }

    private func loseJob(of stream: StreamID) {
        guard let programme = compositions[stream] else { return }
        for feed in programme.feeds.values { stopFeeding(feed) }
        compositions[stream]?.feeds = [:]
        compositions[stream]?.job = nil
        compositions[stream]?.isPlayable = false
        compositions[stream]?.status = CompositionStatus()
        compositionsLost &+= 1
    }

    /// Lets viewers have the composition if it is there.
    private func giveComposition(of stream: StreamID) {
        guard let programme = compositions[stream] else { return }
        let tracks = programme.isPlayable ? programme.tracks : []
        guard let effects = rooms[stream]?.setComposed(tracks) else { return }
        perform(effects, in: stream)
    }

    func endComposition(of stream: StreamID) {
        guard let programme = compositions.removeValue(forKey: stream) else { return }
        for feed in programme.feeds.values { stopFeeding(feed) }
        if let job = programme.job { transcoder?.end(job) }
        closeInjection(programme.inlet.id)
        log.info("composition.ended", ["stream": stream])
    }
}

/// Hands what a tap takes on to the transcoder.
private final class FeedingSink: TapSink {
    private let input: InputID
    private let transcoder: TranscoderSupervisor

    init(_ input: InputID, of transcoder: TranscoderSupervisor) {
        self.input = input
        self.transcoder = transcoder
    }

    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>) {
        guard packet.payload.upperBound <= bytes.count else { return }
        transcoder.feed(input, InputPacket(packet), payload: bytes.extracting(packet.payload))
    }

    func finish() {}
}

extension InputPacket {
    /// Without its payload.
    fileprivate init(_ packet: TappedPacket) {
        self.init(
            sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, marker: packet.marker,
            codec: InputCodec(packet.codec), isEntryPoint: packet.isEntryPoint, epoch: packet.epoch,
            arrival: packet.arrival, captured: packet.captured, audioLevel: packet.audioLevel,
            orientation: packet.orientation)
    }
}

extension InputCodec {
    fileprivate init(_ codec: MediaCodec) {
        self =
            switch codec {
            case .opus: .opus
            case .vp8: .vp8
            case .vp9: .vp9
            case .h264: .h264
            case .av1: .av1
            }
    }
}

extension SourceKey {
    /// What one session publishes on one m-line.
    fileprivate init(_ session: SessionID, of track: PublishedTrack) {
        var hasher = Hasher()
        hasher.combine(session)
        hasher.combine(track.plan.mid)
        self.init(number: UInt64(bitPattern: Int64(hasher.finalize())))
    }
}

extension StageDetails.Composition {
    fileprivate var settings: CompositionSettings {
        var settings = CompositionSettings()
        settings.width = width
        settings.height = height
        settings.framesPerSecond = framesPerSecond
        settings.bitrate = bitrate
        settings.layout = layout == .grid ? .grid : .spotlight
        settings.background = background.rgb
        return settings
    }
}
