import Base
import Forwarding
import Peer
import Stage
import StoryFeed
import Transcoder

/// Composed programmes: what the desk is told of stages, and what is done of what it wants.
extension Node {
    /// Takes in who is to be composed in a stream; nobody for no composition.
    func compose(_ speakers: [ComposedSpeaker], in stream: StreamID) {
        guard transcoder != nil, !isStopping else { return }
        carryOut(compositions.compose(speakers, in: stream, situation(of: stream), at: now().elapsed))
    }

    /// Takes in that the stream's settings changed.
    func updateComposition(of stream: StreamID) {
        guard let settings = directory[stream]?.details.composition?.settings else { return }
        carryOut(compositions.update(settings, of: stream))
    }

    /// Has the publisher of a track that is composed make a key frame.
    func refresh(_ track: PublishedTrack, in stream: StreamID) {
        carryOut(compositions.refresh(track, in: stream))
    }

    func take(_ event: CompositionEvent, of stream: StreamID) {
        carryOut(compositions.receive(event, of: stream, situation(of: stream)))
    }

    func advanceCompositions(to now: MonotonicTime) {
        carryOut(compositions.advance(to: now) { situation(of: $0) })
    }

    private func situation(of stream: StreamID) -> CompositionDesk.Situation {
        let about = directory[stream]
        return CompositionDesk.Situation(
            hasStage: streams[stream]?.room != nil, isLive: about?.state == .live,
            isWatched: streams[stream]?.audience.isEmpty == false || feed.isWatched(stream)
                || about?.isRecording == true,
            settings: about?.details.composition?.settings ?? CompositionSettings())
    }

    /// How compositions do that go on now, how many wait for room, how many for somebody who watches, and how many were
    /// lost with the process so far.
    package var compositionCounters: (statuses: [CompositionStatus], waiting: Int, resting: Int, lost: UInt64)
    {
        compositions.counters
    }

    // MARK: What the desk wants

    private func carryOut(_ effects: [CompositionDesk.Effect]) {
        for effect in effects { carryOut(effect) }
    }

    private func carryOut(_ effect: CompositionDesk.Effect) {
        switch effect {
        case .open(let stream): openComposition(of: stream)
        case .close(let injection): closeInjection(injection)
        case .begin(let stream, let injection, let settings):
            beginComposition(of: stream, into: injection, settings)
        case .end(let job): transcoder?.end(job)
        case .feed(let stream, let job, let want): feed(want, to: job, of: stream)
        case .limit(let feed):
            _ = workers[feed.track.key.worker].post(.limitTap(feed.tap, maximumHeight: feed.maximumHeight))
        case .stop(let feed):
            _ = workers[feed.track.key.worker].post(.closeTap(feed.tap))
            transcoder?.close(feed.input)
        case .refresh(let feed): _ = workers[feed.track.key.worker].post(.demandKeyFrame(feed.tap))
        case .makeKeyFrame(let job):
            transcoder?.command(job, CompositionCommand(isKeyFrameWanted: true).bytes)
        case .show(let stream): show(stream)
        case .give(let stream, let tracks):
            conduct(stream) { $0.setComposed(tracks) }
        case .report(let stream, let report): tell(report, of: stream)
        }
    }

    private func openComposition(of stream: StreamID) {
        let injection = openInjection([ComposedProgramme.audio, ComposedProgramme.video]) { node, event in
            switch event {
            case .opened(let tracks): node.carryOut(node.compositions.made(tracks, of: stream))
            case .keyFrameWanted: node.carryOut(node.compositions.keyFrameWanted(of: stream))
            }
        }
        carryOut(compositions.opened(injection, of: stream, situation(of: stream)))
    }

    private func beginComposition(
        of stream: StreamID, into injection: InjectionID, _ settings: CompositionSettings
    ) {
        guard let transcoder, let inlet = inlet(of: injection) else { return }
        let outlet = CompositionOutlet(inlet) { [inbox = inboxes.compositions] event in
            inbox.put(CompositionNews(stream: stream, event: event))
        }
        let scene = CompositionScene(settings: settings, speakers: [])
        let job = transcoder.begin(.composition, CompositionCommand(scene: scene).bytes) { outlet.take($0) }
        guard let job else { return }
        outlet.begin(job)
        carryOut(compositions.began(job, of: stream))
    }

    /// Has the worker of a track hand its packets to the job.
    private func feed(_ want: ComposedProgramme.Want, to job: JobID, of stream: StreamID) {
        let track = want.track
        guard let transcoder, let codec = track.plan.formats.first?.codec,
            let input = transcoder.open(
                for: job, from: SourceKey(.composition(want.session, mid: track.plan.mid)),
                InputCodec(codec.video))
        else { return }
        let tap = desks.taps.next()
        let opening = TapOpening(
            id: tap, target: .track(track), mode: .whole, maximumHeight: want.maximumHeight,
            sink: ProgrammeFeed(transcoder, input))
        guard workers[track.key.worker].post(.openTap(opening)) else { return transcoder.close(input) }
        let feed = ComposedProgramme.Feed(
            input: input, tap: tap, track: track, maximumHeight: want.maximumHeight)
        carryOut(compositions.fed(feed, to: job, of: stream))
    }

    private func show(_ stream: StreamID) {
        let scene = compositions.scene(of: stream) { speaker in
            sessions[speaker.id.session]?.request.name ?? speaker.participant.description
        }
        guard let scene else { return }
        transcoder?.command(scene.job, CompositionCommand(scene: scene.scene).bytes)
    }

    private func tell(_ report: CompositionDesk.Report, of stream: StreamID) {
        switch report {
        case .refused:
            log.warning("composition.refused", ["stream": stream, "limit": configuration.compositionLimit])
        case .begun(let speakers):
            log.info("composition.begun", ["stream": stream, "speakers": speakers])
        case .level(let status):
            log.warning(
                "composition.level",
                [
                    "stream": stream, "quality": status.level, "fps": status.targetFramesPerSecond,
                    "width": status.width, "height": status.height,
                ])
        case .lost: log.warning("composition.lost", ["stream": stream])
        case .rests: log.info("composition.rests", ["stream": stream])
        case .ended: log.info("composition.ended", ["stream": stream])
        }
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
