import Base
import Crypto
import Foundation
import Peer
import Stage
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Node
@testable import Transcoder

/// Does what `LiveStreams` wants as a node would, with a transcoder and workers that take everything unless told not
/// to, and knows what is open then.
struct LiveRig {
    let directory = StreamDirectory()
    var live: LiveStreams
    var now = MonotonicTime.zero + .seconds(1)
    /// Whether workers and the transcoder take anything that makes media.
    var areWorkersFull = false
    var isTranscoderFull = false
    /// What workers know of.
    private(set) var opened: Set<SessionID> = []
    private(set) var injections: [InjectionID: InjectionOpening] = [:]
    private(set) var taps: Set<TapID> = []
    /// What the transcoder does.
    private(set) var jobs: [JobID: StreamID] = [:]
    private(set) var renditionJobs: [JobID: (TrackKey, RenditionDesk.Run)] = [:]
    private(set) var inputs: Set<InputID> = []
    /// What each session's seats are on.
    private(set) var seats: [SessionID: [Int: StreamID]] = [:]
    /// What clients were told, in order.
    private(set) var told: [(session: SessionID, text: String)] = []
    /// What viewers of each stream get instead of what the source sends.
    private(set) var programmes: [StreamID: [PublishedTrack]] = [:]
    private(set) var changed: [StreamID] = []
    private(set) var notices: [(stream: StreamID, notice: StageNotice)] = []
    private(set) var closed: [(session: SessionID, reason: String)] = []
    private var random = SeededGenerator(seed: 1)
    private var last: UInt64 = 0

    init(_ change: (inout LiveSettings) -> Void = { _ in }) {
        var settings = LiveSettings()
        (settings.workers, settings.isProducing) = (2, true)
        change(&settings)
        live = LiveStreams(directory: directory, settings: settings, feedTag: 1)
    }

    private mutating func next() -> UInt64 {
        last += 1
        return last
    }

    // MARK: Streams and sessions

    /// A stream that is live, as its stage would say.
    func begin(
        _ stream: StreamID, _ programme: StageDetails.Programme = .host, gate: StageDetails.Gate? = nil,
        speakers: Set<ParticipantID> = [], banned: Set<ParticipantID> = [], isPublished: Bool = false
    ) {
        var snapshot = StreamSnapshot(waitingFor: stream)
        snapshot.state = .live
        snapshot.isPublished = isPublished
        snapshot.details.gate = gate
        snapshot.speakers = speakers
        for participant in banned { snapshot.banned[participant] = WallTime(milliseconds: 1) }
        snapshot.createdAt = WallTime(milliseconds: 1)
        snapshot.details.programme = programme
        directory.update(snapshot)
    }

    static let opus = [MediaFormat(codec: .opus, payloadType: 111)]
    static let vp8 = [MediaFormat(codec: .vp8, payloadType: 96)]

    /// What an offer with these m-lines comes to: sources first, `0` and so on, and then slots.
    static func plan(sends: [MediaKind], gets: [MediaKind]) -> SessionPlan {
        var plan = SessionPlan(
            remoteCredentials: ICECredentials(ufrag: "x", password: Secret("y")), fingerprints: [])
        plan.sources = sends.enumerated().map { index, kind in
            SourcePlan(mid: "\(index)", kind: kind, formats: kind == .audio ? opus : vp8)
        }
        plan.slots = gets.enumerated().map { index, kind in
            SlotPlan(
                mid: "\(sends.count + index)", kind: kind, ssrc: UInt32(index), repairSSRC: nil, cname: "c",
                formats: kind == .audio ? opus : vp8, extensions: ExtensionIDs(),
                allowsMixedExtensions: true)
        }
        return plan
    }

    mutating func candidate(
        _ request: SessionRequest, sends: [MediaKind] = [], gets: [MediaKind] = [],
        clearance: SessionCandidate.Clearance? = nil
    ) -> SessionCandidate {
        SessionCandidate(
            id: SessionID(using: &random), request: request, plan: Self.plan(sends: sends, gets: gets),
            worker: live.sessions.leastLoadedWorker, credentials: ICECredentials(using: &random),
            clearance: clearance)
    }

    /// A session that the worker has, connected or not.
    mutating func admit(_ candidate: SessionCandidate) throws -> SessionID {
        let (opening, actions) = try live.admit(candidate, at: now)
        #expect(opening.id == candidate.id && opened.insert(opening.id).inserted)
        if let stream = opening.follows { seats[opening.id] = [0: stream] }
        perform(actions)
        return candidate.id
    }

    /// Somebody comes whose sound and picture flow at once.
    /// - Parameter isHost: whether the stage says so; nil for the word of the token.
    mutating func publish(
        _ name: String, as authority: Stage.Sender.Authority, in stream: StreamID,
        _ kinds: [MediaKind] = [.audio, .video], isHost: Bool? = nil
    ) throws -> SessionID {
        let sender = Stage.Sender(id: try #require(ParticipantID(name)), authority: authority)
        var request = SessionRequest(purpose: .stage, stream: stream, sender: sender, offer: "")
        if let isHost { request.isHost = isHost }
        let id = try admit(candidate(request, sends: kinds, gets: [.audio, .video]))
        receive(.connected(id, .aeadAES128GCM, nil))
        let worker = live.sessions[id]?.worker ?? 0
        let tracks = Self.plan(sends: kinds, gets: []).sources.map { plan in
            PublishedTrack(
                key: TrackKey(worker: worker, track: TrackID(number: next())), plan: plan,
                extensions: ExtensionIDs())
        }
        receive(.published(id, tracks))
        for track in tracks { receive(.sourceChanged(id, mid: track.plan.mid, isActive: true)) }
        receive(.mediaStarted(id))
        return id
    }

    /// Whose each source was that a stream's stage was told of, in order; nil for none.
    func toldSources(of stream: StreamID) -> [ParticipantID?] {
        notices.compactMap { told, notice in
            guard told == stream, case .setSource(let source) = notice else { return nil }
            return .some(source?.owner)
        }
    }

    /// The feed hears of what streams told of themselves.
    mutating func takeNews() {
        let news = directory.takeNews()
        change { live, now in live.update(news, at: now) }
    }

    // MARK: What comes in

    mutating func receive(_ event: WorkerEvent) { change { $0.receive(event, at: $1) } }

    /// A client says something on its control channel.
    mutating func say(_ text: String, by id: SessionID) {
        receive(.controlMessage(id, DataChannelMessage(text)))
    }

    mutating func change(_ body: (inout LiveStreams, MonotonicTime) -> [LiveAction]) {
        perform(body(&live, now))
    }

    /// Lets time pass, as a node's timers do.
    mutating func advance(by time: Duration) {
        let end = now + time
        while now < end {
            now = min(now + StageRoom.interval, end)
            change { $0.advanceStages(to: $1) }
        }
        change { $0.advanceSessions(to: $1) }
    }

    /// What its clients were told last of a kind.
    func lastReply(to id: SessionID, _ type: String) -> Reply? {
        told.last { $0.session == id && Reply($0.text)?.type == type }.flatMap { Reply($0.text) }
    }

    func lastReply(to id: SessionID) -> Reply? {
        told.last { $0.session == id }.flatMap { Reply($0.text) }
    }

    struct Reply: Decodable {
        struct Slot: Decodable {
            let mid: String
            let participant: String?
            let participants: [String]?
        }
        let type: String?
        let mid: String?
        let rids: [String]?
        let slots: [Slot]?
        let rule: String?
        let state: String?
        let remaining: Double?

        init?(_ text: String) {
            guard let reply = try? JSONDecoder().decode(Reply.self, from: Data(text.utf8)) else { return nil }
            self = reply
        }
    }

    // MARK: What goes out

    mutating func perform(_ actions: [LiveAction]) {
        for action in actions { perform(action) }
    }

    private mutating func perform(_ action: LiveAction) {
        switch action {
        case .post(let command, let worker, _): post(command, to: worker)
        case .postToAll(.setProgramme(let stream, let tracks)): programmes[stream] = tracks
        case .postToAll: break
        case .fence(let number, _): receive(.passed(number))
        case .inject(let opening, _):
            if !areWorkersFull { #expect(injections.updateValue(opening, forKey: opening.id) == nil) }
            let isTaken = !areWorkersFull
            change { $0.opened(opening.id, isTaken: isTaken, at: $1) }
        case .produce(let production): perform(production)
        case .resume(let step): change { $0.resume(step, at: $1) }
        case .count(let place): change { live, _ in live.take(place) }
        case .programmeChanged(let stream): changed.append(stream)
        case .notify(let notice, let stream): notices.append((stream, notice))
        case .report(.closed(let record, let reason)): closed.append((record.id, reason))
        case .report: break
        }
    }

    private mutating func post(_ command: WorkerCommand, to worker: Int) {
        switch command {
        case .seat(let id, let pair, let stream, _, _): seats[id, default: [:]][pair] = stream
        case .close(let id):
            #expect(opened.remove(id) != nil)
            seats[id] = nil
            // One that has lost its place in the feed is ended by its worker.
            receive(.closed(id, .ended))
        case .closeInjection(let id): #expect(injections.removeValue(forKey: id) != nil)
        case .closeTap(let id): #expect(taps.remove(id) != nil)
        case .limitTap(let id, _), .demandKeyFrame(let id): #expect(taps.contains(id))
        case .sendControl(let id, let message):
            told.append((id, String(decoding: message.bytes, as: UTF8.self)))
        default: break
        }
    }

    private mutating func perform(_ production: LiveAction.Production) {
        switch production {
        case .beginComposition(let stream, let injection, _, _):
            guard !isTranscoderFull, injections[injection] != nil else { return }
            let job = JobID(number: next())
            jobs[job] = stream
            change { live, now in live.produce(at: now) { $0.began(job, compositionOf: stream) } }
        case .beginPausePicture(let stream, let run, let injection, _, _):
            guard !isTranscoderFull, injections[injection] != nil else { return }
            let job = JobID(number: next())
            jobs[job] = stream
            change { live, now in live.produce(at: now) { $0.began(job, run, pauseOf: stream) } }
        case .beginRenditions(let key, let run, let injection):
            guard !isTranscoderFull, injections[injection] != nil else { return }
            let job = JobID(number: next())
            renditionJobs[job] = (key, run)
            change { live, now in live.produce(at: now) { $0.began(job, run, renditionsOf: key) } }
        case .end(let job):
            let isRendition = renditionJobs.removeValue(forKey: job) != nil
            #expect(isRendition || jobs.removeValue(forKey: job) != nil)
        case .command(let job, _): #expect(jobs[job] != nil || renditionJobs[job] != nil)
        case .feed(let want, let job, let owner):
            guard jobs[job] != nil || renditionJobs[job] != nil else { return }
            let feed = ComposedProgramme.Feed(
                input: InputID(number: next()), tap: TapID(number: next()), track: want.track,
                maximumHeight: want.maximumHeight)
            (taps, inputs) = (taps.union([feed.tap]), inputs.union([feed.input]))
            change { live, now in live.produce(at: now) { $0.fed(feed, to: job, of: owner) } }
        case .close(let input): #expect(inputs.remove(input) != nil)
        case .forgetPausePicture: break
        }
    }

    /// A picture that a session of a worker sends.
    static func track(_ number: UInt64, on worker: Int) -> PublishedTrack {
        PublishedTrack(
            key: TrackKey(worker: worker, track: TrackID(number: number)), plan: PauseDesk.plan,
            extensions: ExtensionIDs())
    }

    /// The worker says that the tracks of all injections are there.
    mutating func makeTracks() {
        for (id, opening) in injections.sorted(by: { $0.key.number < $1.key.number }) {
            guard case .tracks(let sources) = opening.target else { continue }
            let tracks = sources.map { plan -> PublishedTrack in
                let track = TrackID(number: 1_000 * id.number + (plan.kind == .video ? 1 : 0))
                return PublishedTrack(
                    key: TrackKey(worker: 0, track: track), plan: plan, extensions: ExtensionIDs())
            }
            receive(.injected(id, tracks))
        }
    }

    /// The transcoder's process dies with all its jobs.
    mutating func loseJobs() {
        let lost = jobs
        jobs = [:]
        for (job, stream) in lost.sorted(by: { $0.key.number < $1.key.number }) {
            change { $0.receive(.lost(job), of: stream, at: $1) }
        }
        let renditions = renditionJobs
        renditionJobs = [:]
        for (_, (key, run)) in renditions.sorted(by: { $0.key.number < $1.key.number }) {
            let news = RenditionNews(track: key, run: run, event: .lost)
            change { live, now in live.produce(at: now) { $0.receive(news, at: now) } }
        }
    }

    /// Whether nothing is left of anything.
    var isClear: Bool {
        opened.isEmpty && injections.isEmpty && taps.isEmpty && jobs.isEmpty && renditionJobs.isEmpty
            && inputs.isEmpty
            && live.sessions.count == 0
    }
}
