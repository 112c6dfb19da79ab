import Base
import Forwarding
import Peer
import Transcoder

/// What the server makes for viewers: compositions, pause pictures and renditions, and the injections that bring them
/// to workers.
///
/// Pure, like the desks in it. It finds out which desk an injection's events concern, and turns the desks' effects
/// into actions.
struct Productions {
    typealias Situation = CompositionDesk.Situation

    /// What follows from a change.
    enum Effect {
        case act(LiveAction)
        /// Tracks are needed on some worker; the caller chooses one and calls `inject`.
        case open(Injections.Owner)
        /// A pause picture begins or ends, so viewers receive other tracks.
        case giveProgramme(StreamID)
        /// A report for operators about the renditions of what a session sends.
        case report(RenditionDesk.Report, SessionID)
    }

    private var compositions: CompositionDesk
    private var pauses = PauseDesk()
    private var renditions: RenditionDesk
    private var injections = Injections()

    /// - Parameters:
    ///   - compositionLimit: compositions at the same time.
    ///   - renditionLimit: tracks of which renditions are made at the same time.
    init(compositionLimit: Int, renditionLimit: Int) {
        compositions = CompositionDesk(limit: compositionLimit)
        renditions = RenditionDesk(limit: renditionLimit)
    }

    /// Applies to what begins from now on.
    mutating func setLimits(compositions: Int, renditions: Int) {
        self.compositions.limit = compositions
        self.renditions.limit = renditions
    }

    // MARK: Compositions

    /// The status of each running composition, how many wait for room, how many rest because they have no viewers,
    /// and how many were lost with the transcoder's process since the start.
    var compositionCounters: (statuses: [CompositionStatus], waiting: Int, resting: Int, lost: UInt64) {
        compositions.counters
    }

    /// The streams whose situation `advance` needs.
    var composedStreams: [StreamID] { compositions.streams }

    /// The scene of a stream's composition, and the job that should show it; nil if there is no job.
    func scene(
        of stream: StreamID, name: (ComposedSpeaker) -> String
    ) -> (job: JobID, scene: CompositionScene)? {
        compositions.scene(of: stream, name: name)
    }

    /// Sets the speakers to be composed in a stream; none to end its composition.
    mutating func compose(
        _ speakers: [ComposedSpeaker], in stream: StreamID, _ situation: Situation, at now: MonotonicTime
    ) -> [Effect] {
        take(compositions.compose(speakers, in: stream, situation, at: now))
    }

    /// Applies a stream's settings to its composition, if they have changed.
    mutating func update(_ settings: CompositionSettings, of stream: StreamID) -> [Effect] {
        take(compositions.update(settings, of: stream))
    }

    /// Requests a key frame from the publisher of a track that is composed.
    mutating func refresh(_ track: PublishedTrack, in stream: StreamID) -> [Effect] {
        take(compositions.refresh(track, in: stream))
    }

    mutating func receive(
        _ event: CompositionEvent, of stream: StreamID, _ situation: Situation
    ) -> [Effect] {
        take(compositions.receive(event, of: stream, situation))
    }

    /// Ends what has been unused for long enough, and retries what could not begin.
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
        // The job of a pause picture has no inputs.
        case .pausePicture: []
        }
    }

    /// Handles that a track cannot be fed to a job; a composition goes on without that track.
    mutating func refused(by job: JobID, of owner: Injections.Owner, at now: MonotonicTime) -> [Effect] {
        guard case .renditions(let key) = owner else { return [] }
        return take(renditions.refused(by: job, of: key, at: now))
    }

    // MARK: Renditions

    /// The status of each running rendition, how many tracks wait for room, and how many renditions were lost since
    /// the start.
    var renditionCounters: (statuses: [RenditionStatus], waiting: Int, lost: UInt64) { renditions.counters }

    /// Notes whether viewers need renditions of a track.
    /// - Parameter session: the track's publisher.
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

    /// The number of programmes that show a pause picture now.
    var pausedCount: Int { pauses.playableCount }

    /// The track that replaces the programme's picture; nil if no pause picture is shown.
    func pauseTrack(of stream: StreamID) -> PublishedTrack? { pauses.track(of: stream) }

    /// The picture that a stream's host has chosen; nil for none.
    func pauseFile(of stream: StreamID) -> [UInt8]? { pauses.file(of: stream) }

    /// Whether the memory for all hosts' pictures has room for this one.
    func hasRoom(forPauseFile file: [UInt8]?, of stream: StreamID) -> Bool {
        pauses.hasRoom(for: file, of: stream)
    }

    mutating func setPauseFile(_ file: [UInt8]?, of stream: StreamID) { pauses.setFile(file, of: stream) }

    /// Deletes the picture that the host of an ended stream has chosen.
    mutating func forgetPauseFile(of stream: StreamID) -> [Effect] { take(pauses.forgetFile(of: stream)) }

    /// Makes a pause picture that viewers see again, because the host has chosen another one or none.
    mutating func renewPause(of stream: StreamID, at now: MonotonicTime) -> [Effect] {
        take(pauses.renew(stream, at: now))
    }

    /// Notes whether a stream's viewers should see a pause picture.
    /// - Parameter lastFrame: the last preview, used if the host has chosen no picture; nil if there is none.
    mutating func updatePause(
        of stream: StreamID, isWanted: Bool, lastFrame: [UInt8]?, at now: MonotonicTime
    ) -> [Effect] {
        take(pauses.update(stream, isWanted: isWanted, lastFrame: lastFrame, at: now))
    }

    /// The streams whose pause pictures have to be checked now, even though nothing was reported about them.
    func pausesDue(at now: MonotonicTime) -> [StreamID] { pauses.due(at: now) }

    mutating func began(_ job: JobID, _ run: PauseDesk.Run, pauseOf stream: StreamID) -> [Effect] {
        take(pauses.began(job, run, of: stream))
    }

    mutating func receive(_ event: PauseEvent, of stream: StreamID, at now: MonotonicTime) -> [Effect] {
        take(pauses.receive(event, of: stream, at: now))
    }

    // MARK: Injections

    /// Opens an injection with the tracks that its owner needs.
    /// - Parameter worker: ignored for renditions, which are layers of a track and so have to be on the track's
    ///   worker.
    mutating func inject(for owner: Injections.Owner, on worker: Int) -> LiveAction {
        let sources: [SourcePlan]
        switch owner {
        case .composition: sources = [ComposedProgramme.audio, ComposedProgramme.video]
        case .pausePicture: sources = [PauseDesk.plan]
        case .renditions(let key):
            let id = injections.open(for: owner, on: key.worker)
            return .inject(InjectionOpening(id: id, renditionsOf: key.track), worker: key.worker)
        }
        let id = injections.open(for: owner, on: worker)
        return .inject(InjectionOpening(id: id, sources: sources), worker: worker)
    }

    /// What an injection is for; nil if it is not open.
    func owner(of id: InjectionID) -> Injections.Owner? { injections[id]?.owner }

    /// Handles that a worker was asked to make tracks.
    /// - Parameters:
    ///   - isTaken: false if the worker accepts no more; the injection is removed then.
    ///   - situation: of the stream, for a composition.
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

    /// Handles that a worker has made an injection's tracks: programmes can use them now.
    mutating func made(_ tracks: [PublishedTrack], of id: InjectionID) -> [Effect] {
        switch injections[id]?.owner {
        case .composition(let stream): take(compositions.made(tracks, of: stream))
        case .pausePicture(let stream): take(pauses.made(tracks.first, of: stream))
        // Renditions are layers of a track that exists already.
        case .renditions, nil: []
        }
    }

    /// Requests a key frame from the job that fills an injection.
    /// - Parameter layer: used for renditions only; the other jobs make a key frame in all layers.
    mutating func keyFrameWanted(of id: InjectionID, layer: Int) -> [Effect] {
        switch injections[id]?.owner {
        case .composition(let stream): take(compositions.keyFrameWanted(of: stream))
        case .pausePicture(let stream): take(pauses.keyFrameWanted(of: stream))
        case .renditions(let key): take(renditions.keyFrameWanted(of: key, layer: layer))
        case nil: []
        }
    }

    /// Closes an injection, of which later events are ignored.
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
    /// A command about a tap, for the worker that has the tapped track.
    fileprivate static func tap(_ feed: ComposedProgramme.Feed, _ command: WorkerCommand) -> Self {
        .act(.post(command, worker: feed.track.key.worker, of: nil))
    }
}

extension [Productions.Effect] {
    /// Closes both ends of a feed: the tap on the worker and the input of the job.
    fileprivate static func stop(_ feed: ComposedProgramme.Feed) -> Self {
        [.tap(feed, .closeTap(feed.tap)), .act(.produce(.close(feed.input)))]
    }
}
