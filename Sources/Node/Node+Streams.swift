import Base
import Forwarding
import Peer
import Recordings
import Stage
import StoryFeed
import Transcoder

/// What is heard of streams from all sides, which `LiveStreams` decides on.
extension Node {
    // MARK: What workers, stages and jobs tell

    func take(_ event: WorkerEvent) async {
        switch event {
        case .sessionKeyFrameWanted(let id): makeKeyFrame(of: id)
        case .keyFrameRequested(let id, let request): note(request, to: id)
        default: break
        }
        await perform(live.receive(event, at: now().elapsed))
    }

    private func note(_ request: SentKeyFrameRequest, to publisher: SessionID) {
        log.debug(
            "key-frame.requested",
            [
                "session": publisher.label, "mid": request.mid, "rid": request.rid ?? "",
                "reason": "\(request.occasion.reason)", "attempt": request.occasion.attempt,
                "age-ms": request.occasion.age.map { "\($0.wholeNanoseconds / 1_000_000)" } ?? "none",
            ])
    }

    /// Does what a stage decided, once that is durable.
    func perform(_ effect: StageEffect, in stream: StreamID) async {
        await perform(live.perform(effect, in: stream, at: now().elapsed))
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

    /// A viewer of the feed is somewhere else.
    func take(_ change: PresenceChange) async {
        await perform(live.take(change))
    }

    /// How compositions do that go on now, how many wait for room, how many for somebody who watches, and how many were
    /// lost with the process so far.
    package var compositionCounters: (statuses: [CompositionStatus], waiting: Int, resting: Int, lost: UInt64)
    {
        live.productions.compositionCounters
    }

    /// How renditions do that are made now, of how many tracks they wait for room, and how many were lost so far.
    package var renditionCounters: (statuses: [RenditionStatus], waiting: Int, lost: UInt64) {
        live.productions.renditionCounters
    }

    // MARK: Time

    /// Looks who speaks, on every stage, and what is made for viewers.
    func advanceStages() async {
        await perform(live.advanceStages(to: now().elapsed))
    }

    /// Ends viewers that waited long enough, and forgets streams that nobody needs; once a second.
    func keepHouse() async {
        let moment = now()
        await perform(live.advanceSessions(to: moment.elapsed))
        for host in registry.all where live[host.id] == nil {
            if let idle = await host.closeIfIdle() { registry.remove(host, because: idle) }
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
}
