import Base
import Forwarding
import Peer
import Recordings
import Stage
import StoryFeed
import Transcoder

/// Passes to `LiveStreams` what workers, stages and jobs report about streams.
extension Node {
    // MARK: What workers, stages and jobs tell

    /// Handles an event of a worker; events about key frames, which change nothing in `LiveStreams`, are handled
    /// here.
    func take(_ event: WorkerEvent) async {
        switch event {
        case .sessionKeyFrameWanted(let id): makeKeyFrame(of: id)
        case .keyFrameRequested(let id, let request): note(request, to: id)
        default: break
        }
        await perform(live.receive(event, at: now().elapsed))
    }

    /// Logs that a publisher was asked for a key frame, and why.
    private func note(_ request: SentKeyFrameRequest, to publisher: SessionID) {
        log.debug(
            "key-frame.requested",
            [
                "session": publisher.label, "mid": request.mid, "rid": request.rid ?? "",
                "reason": "\(request.occasion.reason)", "attempt": request.occasion.attempt,
                "age-ms": request.occasion.age.map { "\($0.wholeNanoseconds / 1_000_000)" } ?? "none",
            ])
    }

    /// Performs an effect of a stage; the change that caused it is durable by now.
    /// - Parameter number: from `EffectNumbers`; what the stage admitted after that goes on.
    func perform(_ effect: StageEffect, in stream: StreamID, number: UInt64 = .max) async {
        await perform(live.perform(effect, in: stream, number: number, at: now().elapsed))
    }

    func take(_ event: CompositionEvent, of stream: StreamID) async {
        await perform(live.receive(event, of: stream, at: now().elapsed))
    }

    func take(_ event: PauseEvent, of stream: StreamID) async {
        let time = now().elapsed
        await perform(live.produce(at: time) { $0.receive(event, of: stream, at: time) })
    }

    func take(_ news: RenditionNews) async {
        let time = now().elapsed
        await perform(live.produce(at: time) { $0.receive(news, at: time) })
    }

    /// Notifies stages that a feed viewer has moved from one stream to another.
    func take(_ change: PresenceChange) async {
        await perform(live.take(change))
    }

    /// The status of each running composition, how many wait for room, how many rest because they have no viewers,
    /// and how many were lost with the transcoder's process since the start.
    package var compositionCounters: (statuses: [CompositionStatus], waiting: Int, resting: Int, lost: UInt64)
    {
        live.productions.compositionCounters
    }

    /// The status of each running rendition, how many tracks wait for room, and how many renditions were lost since
    /// the start.
    package var renditionCounters: (statuses: [RenditionStatus], waiting: Int, lost: UInt64) {
        live.productions.renditionCounters
    }

    // MARK: Time

    /// Updates the active speakers of all stages and what is made for viewers; called every `StageRoom.interval`.
    func advanceStages() async {
        await perform(live.advanceStages(to: now().elapsed))
    }

    /// Ends viewers whose waiting time is over, and forgets what is no longer needed; called once a second.
    func keepHouse() async {
        let moment = now()
        await perform(live.advanceSessions(to: moment.elapsed))
        // A stream with sessions is in use; any other stage closes unless something would be lost.
        for host in registry.all where live[host.id] == nil {
            // Sessions may be admitted while this waits for the host.
            let arrivals = host.door.arrivals
            if let idle = await host.closeIfIdle(since: arrivals) { registry.remove(host, because: idle) }
        }
        registry.forgetEnded(at: moment)
        omissions.tell(inboxCounters, to: log)
        await previews?.advance()
        await clips?.advance { [directory] in directory[$0]?.state == .ended }
        await recordings?.advance { [directory] in directory[$0]?.state == .ended }
        await packagings?.advance(
            ended: { [directory] in directory[$0]?.state == .ended },
            off: { [directory] in directory[$0]?.details.hls == .off },
            window: { [self] in dvrWindow(of: $0) })
        await keepWindows()
        await restreams?.advance { [directory] in directory[$0]?.state == .ended }
    }

    // MARK: What viewers get

    /// Schedules a new look at a stream's programme, for pause pictures, previews and recordings.
    ///
    /// Call this wherever the programme's source may have changed, or its picture may have come or gone: nothing
    /// polls for it.
    func programmeChanged(in stream: StreamID) {
        inboxes.programmes.put(ProgrammeChange(stream: stream))
        // In a queue of its own, because a recording may wait for a disk.
        inboxes.recorded.put(ProgrammeChange(stream: stream))
    }

    /// Starts or ends the pause picture and the preview that a stream's programme needs now.
    func followProgramme(of stream: StreamID) async {
        await followPause(of: stream)
        await followPreview(of: stream)
    }
}
