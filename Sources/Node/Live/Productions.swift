import Base
import Forwarding
import Peer
import Transcoder

/// What the server itself makes for the viewers of streams: compositions, pause pictures and renditions, and the
/// injections by which these reach workers.
///
/// Pure, like the desks in it: it finds out whom an injection's events concern, and turns what desks want into actions.
struct Productions {
    typealias Situation = CompositionDesk.Situation

    /// What follows.
    enum Effect {
        case act(LiveAction)
        /// Tracks are needed on some worker: see `inject`.
        case open(Injections.Owner)
        /// Viewers get another pause picture, or none.
        case giveProgramme(StreamID)
        /// An operator hears of renditions of what a session sends.
        case report(RenditionDesk.Report, SessionID)
    }

    private var compositions: CompositionDesk
    private var pauses = PauseDesk()
    private var renditions: RenditionDesk
    private var injections = Injections()

    /// - Parameters:
    ///   - compositionLimit: of compositions at the same time.
    ///   - renditionLimit: of tracks that renditions are made of at the same time.
    init(compositionLimit: Int, renditionLimit: Int) {
        compositions = CompositionDesk(limit: compositionLimit)
        renditions = RenditionDesk(limit: renditionLimit)
    }

    /// For what begins from now on.
    mutating func setLimits(compositions: Int, renditions: Int) {
        self.compositions.limit = compositions
        self.renditions.limit = renditions
    }

    // MARK: Compositions

    /// How compositions do that go on now, how many wait for room, how many for somebody who watches, and how many were
    /// lost with the process so far.
    var compositionCounters: (statuses: [CompositionStatus], waiting: Int, resting: Int, lost: UInt64) {
        compositions.counters
    }

    /// Streams of which the situation matters to `advance`.
    var composedStreams: [StreamID] { compositions.streams }

    /// What a stream's job is to show, and which job that is; nil where there is none.
    func scene(
        of stream: StreamID, name: (ComposedSpeaker) -> String
    ) -> (job: JobID, scene: CompositionScene)? {
        compositions.scene(of: stream, name: name)
    }

    /// Takes in who is to be composed in a stream; nobody for no composition.
    mutating func compose(
        _ speakers: [ComposedSpeaker], in stream: StreamID, _ situation: Situation, at now: MonotonicTime
    ) -> [Effect] {
        take(compositions.compose(speakers, in: stream, situation, at: now))
    }

    /// Takes in that a stream's settings may have changed.
    mutating func update(_ settings: CompositionSettings, of stream: StreamID) -> [Effect] {
        take(compositions.update(settings, of: stream))
    }

    /// The publisher of a track that is composed is to make a key frame.
    mutating func refresh(_ track: PublishedTrack, in stream: StreamID) -> [Effect] {
        take(compositions.refresh(track, in: stream))
    }

    mutating func receive(
        _ event: CompositionEvent, of stream: StreamID, _ situation: Situation
    ) -> [Effect] {
        take(compositions.receive(event, of: stream, situation))
    }

    /// Ends compositions that nobody needed for a while, and begins again what could not begin.
    mutating func advance(to now: MonotonicTime, _ situations: [StreamID: Situation]) -> [Effect] {
        take(compositions.advance(to: now) { situations[$0] ?? Situation(hasStage: false) })
            + take(renditions.advance(to: now))
    }

    mutating func began(_ job: JobID, compositionOf stream: StreamID) -> [Effect] {
        take(compositions.began(job, of: stream))
    }

    mutating func fed(
        _ feed: ComposedProgramme.Feed, to job: JobID, of owner: Injections.Owner
    ) -> [Effect] {
        switch owner {
        case .composition(let stream): take(compositions.fed(feed, to: job, of: stream))
        case .renditions(let key): take(renditions.fed(feed, to: job, of: key))
        // It has no inputs.
        case .pausePicture: []
        }
    }

    /// A track cannot be handed to a job; a composition goes on without it.
    mutating func refused(by job: JobID, of owner: Injections.Owner, at now: MonotonicTime) -> [Effect] {
        guard case .renditions(let key) = owner else { return [] }
        return take(renditions.refused(by: job, of: key, at: now))
    }

    // MARK: Renditions

    /// How renditions do that are made now, of how many tracks they wait for room, and how many were lost so far.
    var renditionCounters: (statuses: [RenditionStatus], waiting: Int, lost: UInt64) { renditions.counters }

    /// Viewers need renditions of what a session publishes, or do so no longer.
    mutating func want(
        renditionsOf track: PublishedTrack, of session: SessionID, isWanted: Bool
    ) -> [Effect] {
        take(renditions.want(track, of: session, isWanted: isWanted))
    }

    mutating func began(_ job: JobID, _ run: RenditionDesk.Run, renditionsOf key: TrackKey) -> [Effect] {
        take(renditions.began(job, run, of: key))
    }

    mutating func receive(_ news: RenditionNews, at now: MonotonicTime) -> [Effect] {
        take(renditions.receive(news.event, of: news.run, of: news.track, at: now))
    }

    // MARK: Pause pictures

    /// Programmes whose picture is a pause picture now.
    var pausedCount: Int { pauses.playableCount }

    /// What viewers get in the place of the programme's picture; nil for nothing.
    func pauseTrack(of stream: StreamID) -> PublishedTrack? { pauses.track(of: stream) }

    /// The picture that a stream's host chose; nil for none.
    func pauseFile(of stream: StreamID) -> [UInt8]? { pauses.file(of: stream) }

    /// Whether what all hosts chose would not be too much with it.
    func hasRoom(forPauseFile file: [UInt8]?, of stream: StreamID) -> Bool {
        pauses.hasRoom(for: file, of: stream)
    }

    mutating func setPauseFile(_ file: [UInt8]?, of stream: StreamID) { pauses.setFile(file, of: stream) }

    /// Forgets what the host of a stream chose, which has ended.
    mutating func forgetPauseFile(of stream: StreamID) -> [Effect] { take(pauses.forgetFile(of: stream)) }

    /// Has a pause picture that viewers see made anew.
    mutating func renewPause(of stream: StreamID, at now: MonotonicTime) -> [Effect] {
        take(pauses.renew(stream, at: now))
    }

    /// Takes in whether a stream's viewers are to see a pause picture.
    /// - Parameter lastFrame: the last preview, for where the host chose nothing; nil if there is none.
    mutating func updatePause(
        of stream: StreamID, isWanted: Bool, lastFrame: [UInt8]?, at now: MonotonicTime
    ) -> [Effect] {
        take(pauses.update(stream, isWanted: isWanted, lastFrame: lastFrame, at: now))
    }

    /// Streams whose pause pictures are due to be looked at, though nothing was heard of them.
    func pausesDue(at now: MonotonicTime) -> [StreamID] { pauses.due(at: now) }

    mutating func began(_ job: JobID, _ run: PauseDesk.Run, pauseOf stream: StreamID) -> [Effect] {
        take(pauses.began(job, run, of: stream))
    }

    mutating func receive(_ event: PauseEvent, of stream: StreamID, at now: MonotonicTime) -> [Effect] {
        take(pauses.receive(event, of: stream, at: now))
    }

    // MARK: Injections

    /// Names the tracks that something needs on a worker.
    mutating func inject(for owner: Injections.Owner, on worker: Int) -> LiveAction {
        let sources: [SourcePlan]
        switch owner {
        case .composition: sources = [ComposedProgramme.audio, ComposedProgramme.video]
        case .pausePicture: sources = [PauseDesk.plan]
        case .renditions(let key):
            // Layers of a track are where it is.
            let id = injections.open(for: owner, on: key.worker)
            return .inject(InjectionOpening(id: id, renditionsOf: key.track), worker: key.worker)
        }
        let id = injections.open(for: owner, on: worker)
        return .inject(InjectionOpening(id: id, sources: sources), worker: worker)
    }

    /// What an injection is for; nil for one that is not open.
    func owner(of id: InjectionID) -> Injections.Owner? { injections[id]?.owner }

    /// A worker has been asked for tracks.
    /// - Parameters:
    ///   - isTaken: false if it takes no more.
    ///   - situation: of a composition's stream.
    mutating func opened(
        _ id: InjectionID, isTaken: Bool, _ situation: Situation, at now: MonotonicTime
    ) -> [Effect] {
        let owner = isTaken ? injections[id]?.owner : injections.remove(id)?.owner
        return switch owner {
        case .composition(let stream): take(compositions.opened(isTaken ? id : nil, of: stream, situation))
        case .pausePicture(let stream): take(pauses.opened(isTaken ? id : nil, of: stream, at: now))
        case .renditions(let key): take(renditions.opened(isTaken ? id : nil, of: key, at: now))
        case nil: []
        }
    }

    /// The tracks are there: programmes and slots can be given them.
    mutating func made(_ tracks: [PublishedTrack], of id: InjectionID) -> [Effect] {
        switch injections[id]?.owner {
        case .composition(let stream): take(compositions.made(tracks, of: stream))
        case .pausePicture(let stream): take(pauses.made(tracks.first, of: stream))
        // They are layers of a track that is there.
        case .renditions, nil: []
        }
    }

    /// Somebody waits for a key frame.
    /// - Parameter layer: which of the injection's; the jobs of others make one for all.
    mutating func keyFrameWanted(of id: InjectionID, layer: Int) -> [Effect] {
        switch injections[id]?.owner {
        case .composition(let stream): take(compositions.keyFrameWanted(of: stream))
        case .pausePicture(let stream): take(pauses.keyFrameWanted(of: stream))
        case .renditions(let key): take(renditions.keyFrameWanted(of: key, layer: layer))
        case nil: []
        }
    }

    /// Ends an injection; nothing more is told of it.
    private mutating func close(_ id: InjectionID) -> [Effect] {
        injections.remove(id).map { [.act(.post(.closeInjection(id), worker: $0.worker, of: nil))] } ?? []
    }

    // MARK: What the desks want

    private mutating func take(_ effects: [CompositionDesk.Effect]) -> [Effect] {
        effects.flatMap { action(of: $0) }
    }

    private mutating func action(of effect: CompositionDesk.Effect) -> [Effect] {
        switch effect {
        case .open(let stream): return [.open(.composition(stream))]
        case .close(let id): return close(id)
        case .begin(let stream, let id, let settings):
            guard let worker = injections[id]?.worker else { return [] }
            return [.act(.produce(.beginComposition(stream, id, worker: worker, settings)))]
        case .end(let job): return [.act(.produce(.end(job)))]
        case .feed(let stream, let job, let want):
            return [.act(.produce(.feed(want, job, .composition(stream))))]
        case .limit(let feed): return [.tap(feed, .limitTap(feed.tap, maximumHeight: feed.maximumHeight))]
        case .stop(let feed): return .stop(feed)
        case .refresh(let feed): return [.tap(feed, .demandKeyFrame(feed.tap))]
        case .makeKeyFrame(let job):
            return [.act(.produce(.command(job, CompositionCommand(isKeyFrameWanted: true).bytes)))]
        case .show(let stream): return [.act(.resume(.show(stream)))]
        case .give(let stream, let tracks): return [.act(.resume(.give(stream, tracks)))]
        case .report(let stream, let report): return [.act(.report(.composition(report, stream)))]
        }
    }

    private mutating func take(_ effects: [RenditionDesk.Effect]) -> [Effect] {
        effects.flatMap { action(of: $0) }
    }

    private mutating func action(of effect: RenditionDesk.Effect) -> [Effect] {
        switch effect {
        case .open(let key): return [.open(.renditions(key))]
        case .close(let id): return close(id)
        case .begin(let key, let run, let id): return [.act(.produce(.beginRenditions(key, run, id)))]
        case .end(let job): return [.act(.produce(.end(job)))]
        case .feed(let want, let job):
            return [.act(.produce(.feed(want, job, .renditions(want.track.key))))]
        case .stop(let feed): return .stop(feed)
        case .refresh(let feed): return [.tap(feed, .demandKeyFrame(feed.tap))]
        case .makeKeyFrame(let job, let layer):
            return [.act(.produce(.command(job, RenditionCommand(layer: layer).bytes)))]
        case .report(let report, let session): return [.report(report, session)]
        }
    }

    private mutating func take(_ effects: [PauseDesk.Effect]) -> [Effect] {
        effects.flatMap { action(of: $0) }
    }

    private mutating func action(of effect: PauseDesk.Effect) -> [Effect] {
        switch effect {
        case .open(let stream): return [.open(.pausePicture(stream))]
        case .close(let id): return close(id)
        case .begin(let stream, let run, let id, let picture):
            guard let worker = injections[id]?.worker else { return [] }
            return [.act(.produce(.beginPausePicture(stream, run, id, worker: worker, picture)))]
        case .end(let job): return [.act(.produce(.end(job)))]
        case .makeKeyFrame(let job): return [.act(.produce(.command(job, [])))]
        case .give(let stream): return [.giveProgramme(stream)]
        case .forgetFile(let stream): return [.act(.produce(.forgetPausePicture(stream)))]
        case .reportEnd(let stream): return [.act(.report(.pauseEnded(stream)))]
        }
    }
}

extension Productions.Effect {
    /// Something of a tap, to the worker that has the track.
    fileprivate static func tap(_ feed: ComposedProgramme.Feed, _ command: WorkerCommand) -> Self {
        .act(.post(command, worker: feed.track.key.worker, of: nil))
    }
}

extension [Productions.Effect] {
    /// A job is fed no more.
    fileprivate static func stop(_ feed: ComposedProgramme.Feed) -> Self {
        [.tap(feed, .closeTap(feed.tap)), .act(.produce(.close(feed.input)))]
    }
}
