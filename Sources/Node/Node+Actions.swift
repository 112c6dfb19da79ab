import Base
import Forwarding
import Peer
import Recordings
import Stage
import Transcoder
import Wire

/// Performs what `LiveStreams` has decided: the only place where decisions reach workers, stages and the transcoder.
extension Node {
    /// Performs actions in order, and afterwards lets stages handle what they are notified of.
    ///
    /// Nothing is awaited before all workers and the transcoder have their commands and all notices are queued, so no
    /// other decision can come between.
    func perform(_ actions: [LiveAction]) async {
        var later: [LiveAction] = []
        perform(actions, putOff: &later)
        // Any action may have moved the feed's next deadline.
        scheduleFeed()
        for action in later {
            switch action {
            case .programmeChanged(let stream): programmeChanged(in: stream)
            case .notify(_, let stream): await registry[stream]?.takeNotices()
            default: assertionFailure("nothing else is put off")
            }
        }
    }

    /// - Parameter later: receives the actions that have to be awaited.
    private func perform(_ actions: [LiveAction], putOff later: inout [LiveAction]) {
        for action in actions { perform(action, putOff: &later) }
    }

    /// Performs one action, and immediately whatever follows from its result.
    private func perform(_ action: LiveAction, putOff later: inout [LiveAction]) {
        let time = now().elapsed
        switch action {
        case .post(let command, let worker, let stream):
            guard !workers[worker].post(command), let stream else { return }
            log.error("worker.full", ["worker": worker, "stream": stream])
        case .postToAll(let command): workers.post(command)
        case .fence(let number, let worker):
            // A worker that accepts no commands sends nothing to viewers either, so the fence counts as passed.
            guard !workers[worker].post(.fence(number)) else { return }
            perform(live.pass(number, at: time), putOff: &later)
        case .inject(let opening, let worker):
            let isTaken = workers[worker].post(.openInjection(opening))
            perform(live.opened(opening.id, isTaken: isTaken, at: time), putOff: &later)
        // Each answer, such as a job's number, goes back to `LiveStreams` before the next action.
        case .produce(let production): perform(begin(production), putOff: &later)
        case .resume(let step): perform(live.resume(step, at: time), putOff: &later)
        case .count(let change): inboxes.presence.put(change)
        case .report(let report): note(report, at: time)
        case .notify(let notice, let stream):
            // Without effect if the stream is not in memory.
            registry[stream]?.put(notice, answering: notice.client.flatMap { controlEnd(of: $0) })
            later.append(action)
        case .programmeChanged: later.append(action)
        }
    }

    // MARK: Stages

    /// A way to send to a session's client from outside this actor, for news that are not caused by a worker's event.
    /// - Returns: nil if there is no such session.
    func controlEnd(of id: SessionID) -> ControlEnd? {
        guard let worker = live.sessions[id]?.worker else { return nil }
        return ControlEnd { [workers] text in
            workers[worker].post(.sendControl(id, .string(Array(text.utf8))))
        }
    }

    // MARK: The transcoder

    /// Starts, feeds or ends a job of the transcoder.
    /// - Returns: what follows from the result.
    private func begin(_ production: LiveAction.Production) -> [LiveAction] {
        switch production {
        case .beginComposition(let stream, let injection, let worker, let settings):
            return beginComposition(
                of: stream, into: InjectionInlet(id: injection, worker: workers[worker]), settings)
        case .beginPausePicture(let stream, let run, let injection, let worker, let picture):
            return beginPausePicture(
                of: stream, into: InjectionInlet(id: injection, worker: workers[worker]), run, picture)
        case .end(let job): transcoder?.end(job)
        case .command(let job, let bytes): transcoder?.command(job, bytes)
        case .beginRenditions(let key, let run, let injection):
            return beginRenditions(
                of: key, into: InjectionInlet(id: injection, worker: workers[key.worker]), run)
        case .feed(let want, let job, let owner): return feed(want, to: job, of: owner)
        case .close(let input): transcoder?.close(input)
        case .forgetPausePicture(let stream):
            live.pauseChoices.forget(stream)
            desks.pauseShelf?.remove(stream)
        }
        return []
    }

    /// Starts a composition without speakers; the scene and the inputs follow once `LiveStreams` knows the job.
    private func beginComposition(
        of stream: StreamID, into inlet: InjectionInlet, _ settings: CompositionSettings
    ) -> [LiveAction] {
        guard let transcoder else { return [] }
        let outlet = CompositionOutlet(inlet) { [inbox = inboxes.compositions] event in
            inbox.put(CompositionNews(stream: stream, event: event))
        }
        let scene = CompositionScene(settings: settings, speakers: [])
        let job = transcoder.begin(.composition, CompositionCommand(scene: scene).bytes) { outlet.take($0) }
        // Nothing is reported without a job: the desk tries again each time it advances.
        guard let job else { return [] }
        // Events of the job may have come before its number was known; the outlet passes them on now.
        outlet.begin(job)
        return live.produce(at: now().elapsed) { $0.began(job, compositionOf: stream) }
    }

    /// Makes the worker that has a track send its packets to a job.
    /// - Returns: what follows; `refused` if the transcoder or the worker accepts no more.
    private func feed(
        _ want: ComposedProgramme.Want, to job: JobID, of owner: Injections.Owner
    ) -> [LiveAction] {
        let track = want.track
        let time = now().elapsed
        guard let transcoder, let codec = track.plan.formats.first?.codec,
            let input = transcoder.open(
                for: job, from: SourceKey(.composition(want.session, mid: track.plan.mid)),
                InputCodec(codec.video))
        else { return live.produce(at: time) { $0.refused(by: job, of: owner, at: time) } }
        let tap = desks.taps.next()
        let opening = TapOpening(
            id: tap, target: .track(track), mode: .whole, maximumHeight: want.maximumHeight,
            sink: ProgrammeFeed(transcoder, input))
        // The input is open already, and would stay so without a tap that feeds it.
        guard workers[track.key.worker].post(.openTap(opening)) else {
            transcoder.close(input)
            return live.produce(at: time) { $0.refused(by: job, of: owner, at: time) }
        }
        let feed = ComposedProgramme.Feed(
            input: input, tap: tap, track: track, maximumHeight: want.maximumHeight)
        return live.produce(at: time) { $0.fed(feed, to: job, of: owner) }
    }

    /// Starts the job that makes the renditions of a track.
    private func beginRenditions(
        of key: TrackKey, into inlet: InjectionInlet, _ run: RenditionDesk.Run
    ) -> [LiveAction] {
        guard let transcoder else { return [] }
        let tell: @Sendable (RenditionDesk.Event) -> Void = { [inbox = inboxes.renditions] event in
            inbox.put(RenditionNews(track: key, run: run, event: event))
        }
        let outlet = RenditionOutlet(inlet, tell: tell)
        let job = transcoder.begin(.rendition, RenditionSettings.usual.bytes) { outlet.take($0) }
        guard let job else {
            tell(.lost)
            return []
        }
        return live.produce(at: now().elapsed) { $0.began(job, run, renditionsOf: key) }
    }

    /// Starts the job that makes a pause picture, from the host's file or from a blurred last frame.
    private func beginPausePicture(
        of stream: StreamID, into inlet: InjectionInlet, _ run: PauseDesk.Run, _ picture: PauseDesk.Picture
    ) -> [LiveAction] {
        guard let transcoder else { return [] }
        let request = PausePictureRequest(
            source: SourceKey(.pausePicture(stream)), file: picture.file, isBlurred: picture.isLastFrame,
            seed: random.next())
        let outlet = PauseOutlet(inlet, of: run) { [inbox = inboxes.pauses] event in
            inbox.put(PauseNews(stream: stream, event: event))
        }
        let job = transcoder.begin(.pausePicture, request.bytes, decoding: request.source) { outlet.take($0) }
        log.info("pause.begun", ["stream": stream, "chosen": !picture.isLastFrame])
        guard let job else { return [] }
        return live.produce(at: now().elapsed) { $0.began(job, run, pauseOf: stream) }
    }

    // MARK: The log

    /// Logs a report; the end of a session by RTMP or SRT also ends its connection.
    private func note(_ report: LiveReport, at time: MonotonicTime) {
        switch report {
        case .connected(let record, let profile, let address):
            let relayed = address.flatMap { workers.turn?.client(at: $0) }
            live.noteRelay(relayed, of: record.id)
            log.info(
                "session.connected",
                [
                    "session": record.id.label, "stream": record.stream,
                    "srtp": profile.map { "\($0)" } ?? "none",
                    "address": (relayed?.address ?? address)?.description ?? "",
                    "relay": relayed?.way.rawValue ?? "none",
                ])
        case .closed(let record, let reason):
            endIngest(of: record.id, because: reason)
            // Clients control how often sessions end, so these lines are limited.
            guard omissions.admitSessionLine(at: time) else { return }
            log.info(
                "session.closed",
                ["session": record.id.label, "stream": record.stream, "reason": reason])
        case .source(let record):
            log.info("stream.source", ["stream": record.stream, "session": record.id.label])
        case .sourceGone(let stream, let reason):
            log.info("stream.source-gone", ["stream": stream, "reason": reason])
        case .composition(let report, let stream): note(report, of: stream)
        case .pauseEnded(let stream): log.info("pause.ended", ["stream": stream])
        case .renditions(let report, let session, let stream):
            note(report, of: session, in: stream)
        }
    }

    private func note(_ report: RenditionDesk.Report, of session: SessionID, in stream: StreamID?) {
        let stream = stream?.description ?? ""
        switch report {
        case .refused:
            log.warning(
                "rendition.refused",
                ["stream": stream, "session": session.label, "limit": live.limits.renditions])
        case .begun: log.info("rendition.begun", ["stream": stream, "session": session.label])
        case .lost: log.warning("rendition.lost", ["stream": stream, "session": session.label])
        case .ended: log.info("rendition.ended", ["stream": stream, "session": session.label])
        }
    }

    private func note(_ report: CompositionDesk.Report, of stream: StreamID) {
        switch report {
        case .refused:
            log.warning("composition.refused", ["stream": stream, "limit": live.limits.compositions])
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
