import Base
import Crypto
import Forwarding
import Interaction
import Peer
import Recordings
import Stage
import StoryFeed
import TestSupport
import Testing
import Transcoder
import Wire

@testable import Node

@Suite struct `What is made for viewers` {
    private var rig = LiveRig()
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("show"))
        rig.begin(show, .composed)
    }

    private mutating func watch(_ name: String = "vic") throws -> SessionID {
        let sender = Stage.Sender(id: try #require(ParticipantID(name)), authority: .viewer)
        return try rig.admit(
            rig.candidate(
                SessionRequest(purpose: .stage, stream: show, sender: sender, offer: ""),
                gets: [.audio, .video]))
    }

    /// Two people in one picture, which somebody watches.
    private mutating func compose() throws -> (stage: [SessionID], viewer: SessionID) {
        let viewer = try watch()
        let stage = [
            try rig.publish("ann", as: .host, in: show), try rig.publish("bob", as: .speaker, in: show),
        ]
        rig.advance(by: .milliseconds(200))
        return (stage, viewer)
    }

    private mutating func play() throws {
        rig.makeTracks()
        let job = try #require(rig.jobs.keys.first)
        let show = show
        rig.change { $0.receive(.playable(job), of: show, at: $1) }
    }

    @Test mutating func `is the composition of all, as soon as that can be seen`() throws {
        let (_, viewer) = try compose()
        #expect(rig.jobs.count == 1 && rig.injections.count == 1)
        #expect(rig.taps.count == 4)
        #expect(rig.lastReply(to: viewer, "slots")?.slots?.allSatisfy { $0.participants == nil } == true)
        try play()
        #expect(rig.programmes[show]?.map(\.plan.mid) == ["a", "v"])
        let slots = try #require(rig.lastReply(to: viewer, "slots")?.slots)
        #expect(slots.map(\.participants) == [["ann", "bob"], ["ann", "bob"]])
        #expect(rig.changed.contains(show))
    }

    @Test mutating func `viewers see the active speaker while no composition can be made`() throws {
        rig.areWorkersFull = true
        let (stage, _) = try compose()
        #expect(rig.injections.isEmpty && rig.jobs.isEmpty)
        #expect(rig.programmes[show]?.isEmpty == false)
        rig.areWorkersFull = false
        rig.isTranscoderFull = true
        rig.receive(.sourceChanged(stage[1], mid: "1", isActive: false))
        #expect(rig.injections.count == 1 && rig.jobs.isEmpty)
        rig.isTranscoderFull = false
        rig.advance(by: .milliseconds(100))
        #expect(rig.jobs.count == 1 && rig.taps.count == 4)
    }

    @Test mutating func `begins anew when the transcoder has died, and is who speaks until then`() throws {
        _ = try compose()
        try play()
        rig.loseJobs()
        #expect(rig.jobs.count == 1 && rig.taps.count == 4)
        #expect(rig.programmes[show]?.contains { $0.plan.mid == "v" } == false)
        try play()
        #expect(rig.programmes[show]?.map(\.plan.mid) == ["a", "v"])
    }

    @Test mutating func `ends when one is left, and all that it had is given back`() throws {
        let (stage, viewer) = try compose()
        try play()
        rig.change { $0.end(stage[1], because: "deleted", at: $1) }
        #expect(rig.jobs.count == 1)
        rig.advance(by: .seconds(6))
        #expect(rig.jobs.isEmpty && rig.injections.isEmpty && rig.taps.isEmpty && rig.inputs.isEmpty)
        #expect(rig.programmes[show]?.contains { $0.plan.mid == "v" } == false)
        for id in [stage[0], viewer] { rig.change { $0.end(id, because: "deleted", at: $1) } }
        rig.advance(by: .seconds(1))
        #expect(rig.isClear)
    }

    /// A picture too large for viewers' paths is made smaller on its worker, and everything is given back later.
    @Test mutating func `is made smaller for who needs it, again after the transcoder has died`() throws {
        rig.begin(show)
        let host = try rig.publish("ann", as: .host, in: show)
        let track = LiveRig.track(9, on: 1)
        rig.receive(.renditionWanted(host, track, isWanted: true))
        #expect(rig.renditionJobs.count == 1 && rig.taps.count == 1 && rig.injections.count == 1)
        rig.loseJobs()
        #expect(rig.renditionJobs.isEmpty && rig.injections.isEmpty)
        rig.advance(by: RenditionDesk.shortestPause)
        #expect(rig.renditionJobs.count == 1 && rig.injections.count == 1)
        rig.receive(.renditionWanted(host, track, isWanted: false))
        rig.change { $0.end(host, because: "deleted", at: $1) }
        rig.advance(by: .seconds(1))
        #expect(rig.isClear)
    }

    @Test mutating func `rests while nobody watches`() throws {
        let (_, viewer) = try compose()
        rig.change { $0.end(viewer, because: "deleted", at: $1) }
        rig.advance(by: CompositionDesk.unwatchedTime + .milliseconds(300))
        #expect(rig.jobs.isEmpty && rig.live.productions.compositionCounters.resting == 1)
        _ = try watch("eve")
        rig.advance(by: .milliseconds(100))
        #expect(rig.jobs.count == 1)
    }

    /// Asks as the node does, which knows this from stages and previews.
    private mutating func pause(_ isWanted: Bool) {
        let show = show
        rig.change { live, now in
            live.produce(at: now) { $0.updatePause(of: show, isWanted: isWanted, lastFrame: [1], at: now) }
        }
    }

    @Test mutating func `is a pause picture in the place of the host's own`() throws {
        rig.begin(show)
        _ = try rig.publish("ann", as: .host, in: show)
        pause(true)
        rig.advance(by: PauseDesk.delay)
        // The stream asks by itself to be looked at again.
        #expect(rig.changed.last == show && rig.injections.isEmpty)
        pause(true)
        #expect(rig.jobs.count == 1 && rig.injections.count == 1)
        rig.makeTracks()
        let show = show
        let run = PauseDesk.Run(number: 1)
        rig.change { live, now in
            live.produce(at: now) { $0.receive(.playable(run), of: show, at: now) }
        }
        #expect(rig.programmes[show]?.map(\.plan.mid) == ["v"])
        #expect(rig.live.recordedProgramme(of: show)?.video?.track == rig.programmes[show]?.first)
        #expect(rig.live.productions.pausedCount == 1)
        pause(false)
        #expect(rig.programmes[show] == [] && rig.jobs.isEmpty && rig.injections.isEmpty)
        #expect(rig.live.recordedProgramme(of: show)?.video?.track == nil)
    }

    /// People come, go, speak and turn their cameras off, while jobs come up, die and are refused.
    @Test(arguments: 0..<40 as Range<UInt64>)
    mutating func `leaves nothing behind, whatever happens`(seed: UInt64) throws {
        var chance = SeededGenerator(seed: seed)
        var stage: [SessionID] = []
        var viewers: [SessionID] = []
        for step in 0..<150 {
            rig.areWorkersFull = Int.random(in: 0..<8, using: &chance) == 0
            rig.isTranscoderFull = Int.random(in: 0..<8, using: &chance) == 0
            switch Int.random(in: 0..<10, using: &chance) {
            case 0, 1:
                let isHost = stage.isEmpty
                stage.append(
                    try rig.publish("p\(step % 6)", as: isHost ? .host : .speaker, in: show))
            case 2: viewers.append(try watch("v\(step % 4)"))
            case 3:
                guard let id = (stage + viewers).randomElement(using: &chance) else { break }
                rig.change { $0.end(id, because: "deleted", at: $1) }
            case 4:
                guard let id = stage.randomElement(using: &chance) else { break }
                rig.receive(.voice(id, level: UInt8.random(in: 10...127, using: &chance)))
            case 5:
                guard let id = stage.randomElement(using: &chance) else { break }
                rig.receive(.sourceChanged(id, mid: "1", isActive: Bool.random(using: &chance)))
            case 6: rig.makeTracks()
            case 7:
                let show = show
                for job in rig.jobs.keys.sorted(by: { $0.number < $1.number }) {
                    rig.change { $0.receive(.playable(job), of: show, at: $1) }
                }
            case 8: if Bool.random(using: &chance) { rig.loseJobs() }
            default: rig.advance(by: .milliseconds(Int.random(in: 50...4_000, using: &chance)))
            }
            (stage, viewers) = (stage.filter(isThere), viewers.filter(isThere))
            #expect(rig.jobs.count <= rig.injections.count && rig.jobs.count <= 1)
            #expect(rig.opened.count == rig.live.sessions.count)
        }
        (rig.areWorkersFull, rig.isTranscoderFull) = (false, false)
        for id in stage + viewers { rig.change { $0.end(id, because: "deleted", at: $1) } }
        rig.advance(by: .seconds(20))
        #expect(rig.isClear && rig.live[show] == nil)
    }

    private func isThere(_ id: SessionID) -> Bool { rig.live.sessions[id] != nil }
}

@Suite struct `What the audience has of data tracks` {
    private var rig = LiveRig()

    @Test mutating func `is told to workers when it changes, and ends with the stream`() throws {
        let talk = try #require(StreamID("talk"))
        func told(_ wanted: StageDetails.AudienceData?, _ state: StreamState = .live) -> [DataAccess] {
            var snapshot = StreamSnapshot(waitingFor: talk)
            snapshot.state = state
            snapshot.createdAt = WallTime(milliseconds: 1)
            snapshot.details.audienceData = wanted
            return rig.live.update([talk: snapshot], at: rig.now).compactMap { action in
                if case .postToAll(.setDataAccess(talk, let access)) = action { access } else { nil }
            }
        }
        #expect(told(nil) == [])
        #expect(told(.receive) == [.receive])
        #expect(told(.receive) == [])
        #expect(told(.send) == [.send])
        #expect(told(.send, .ended) == [.nothing])
        #expect(rig.live.dataAccess.isEmpty)
        #expect(told(.send) == [.send])
        let gone = rig.live.update([talk: nil], at: rig.now).count { action in
            if case .postToAll(.setDataAccess(talk, .nothing)) = action { true } else { false }
        }
        #expect(gone == 1)
    }
}

@Suite struct `What is said on control channels as one of the audience` {
    private var rig = LiveRig()
    private let talk: StreamID

    init() throws {
        talk = try #require(StreamID("talk"))
        rig.begin(talk)
    }

    private mutating func say(_ text: String, by id: SessionID) -> [StageNotice] {
        let before = rig.notices.count
        rig.say(text, by: id)
        return rig.notices.dropFirst(before).map(\.notice)
    }

    @Test mutating func `a viewer's comment is sent in the name of the session's token`() throws {
        let ann = try rig.publish("ann", as: .host, in: talk)
        let sender = Stage.Sender(id: try #require(ParticipantID("bob")), authority: .viewer)
        let request = SessionRequest(purpose: .stage, stream: talk, sender: sender, offer: "")
        let bob = try rig.admit(rig.candidate(request, gets: [.audio, .video]))
        for (id, name) in [(ann, "ann"), (bob, "bob")] {
            let notices = say(#"{"type":"comment","id":"a","text":"hi"}"#, by: id)
            guard case .interact(.comment(key: "a", text: "hi"), let who, id) = try #require(notices.first)
            else {
                Issue.record("\(notices)")
                continue
            }
            #expect(who.id.description == name && notices.count == 1)
            guard case .follow(who, id) = try #require(say(#"{"type":"follow"}"#, by: id).first) else {
                Issue.record("\(name) is not told")
                continue
            }
        }
        // Once a client reads again that was too slow, it is told anew.
        rig.receive(.controlOpened(bob))
        guard case .refresh(bob) = try #require(rig.notices.last?.notice) else {
            Issue.record("nobody looks what it missed")
            return
        }
    }
}

@Suite struct `A live stream's audience` {
    private var rig = LiveRig()
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("show"))
        rig.begin(show)
    }

    private mutating func watch(_ name: String = "vic") throws -> SessionID {
        let sender = Stage.Sender(id: try #require(ParticipantID(name)), authority: .viewer)
        let id = try rig.admit(
            rig.candidate(
                SessionRequest(purpose: .stage, stream: show, sender: sender, offer: ""),
                gets: [.audio, .video]))
        rig.receive(.connected(id, .aeadAES128GCM, nil))
        rig.receive(.controlOpened(id))
        return id
    }

    @Test mutating func `hears whose picture and sound it gets, whenever that changes`() throws {
        let viewer = try watch()
        #expect(rig.lastReply(to: viewer, "slots")?.slots?.map(\.participant) == [nil, nil])
        let host = try rig.publish("ann", as: .host, in: show)
        #expect(rig.lastReply(to: viewer, "slots")?.slots?.map(\.participant) == ["ann", "ann"])
        rig.receive(.closed(host, .consentLost))
        #expect(rig.lastReply(to: viewer, "slots")?.slots?.map(\.participant) == [nil, nil])
    }

    @Test mutating func `may ask for the size of what it gets, and for nothing of the stage`() throws {
        let viewer = try watch()
        rig.say(#"{"type":"pin","mid":"1","participant":"ann"}"#, by: viewer)
        #expect(rig.lastReply(to: viewer, "error")?.rule == Rejection.notOnStage.name)
        rig.say(#"{"type":"ping"}"#, by: viewer)
        #expect(rig.lastReply(to: viewer, "pong") != nil)
        rig.say("hello", by: viewer)
        #expect(rig.lastReply(to: viewer, "error")?.rule == "malformed")
        var limits: [Int?] = []
        let now = rig.now
        for text in [
            #"{"type":"slot","mid":"1","maxHeight":180}"#, #"{"type":"visible","mid":"1","visible":false}"#,
            #"{"type":"visible","mid":"1"}"#,
        ] {
            let actions = rig.live.receive(
                .controlMessage(viewer, DataChannelMessage(text)), at: now)
            for case .post(.limit(viewer, mid: "1", maximumHeight: let height), worker: _, of: _) in actions {
                limits.append(height)
            }
        }
        #expect(limits == [180, 1, nil])
    }

    @Test mutating func `asks others to mute by the stage alone`() throws {
        let (viewer, before) = (try watch(), rig.notices.count)
        rig.say(#"{"message_type":"mute","to_participant_identity":"ann","kind":"video"}"#, by: viewer)
        let asked = rig.notices[before...].compactMap { entry -> Stage.Command? in
            if case .submit(let command, _, viewer) = entry.notice { command } else { nil }
        }
        #expect(asked == [.requestMute(try #require(ParticipantID("ann")), .video)])
        rig.change { live, _ in
            [live.sessions[viewer]?.tell(.refusal(.rejected(.notHost)))].compactMap(\.self)
        }
        #expect(rig.lastReply(to: viewer, "error")?.rule == Rejection.notHost.name)
    }

    @Test mutating func `is one session for each who comes back`() throws {
        let first = try watch()
        let other = try watch("eve")
        let second = try watch()
        #expect(rig.live.sessions[first] == nil && rig.live.sessions[second] != nil)
        #expect(rig.live.sessions[other] != nil)
        #expect(rig.closed.map(\.session) == [first])
    }

    @Test mutating func `a viewer waits for a source as long as requested, and then stays`() throws {
        var ids: [SessionID] = []
        for seconds in [5, 60] {
            ids.append(
                try rig.admit(
                    rig.candidate(
                        SessionRequest(
                            purpose: .play, stream: show, sender: nil, offer: "",
                            patience: .seconds(seconds)), gets: [.video])))
        }
        rig.advance(by: .seconds(6))
        #expect(rig.closed.map(\.session) == [ids[0]] && rig.closed.first?.reason == "waited in vain")
        _ = try rig.publish("ann", as: .host, in: show)
        rig.advance(by: .seconds(90))
        #expect(rig.live.sessions[ids[1]] != nil)
    }
}

@Suite struct `A speaker's client` {
    @Test func `hears which of its layers somebody takes`() throws {
        var rig = LiveRig()
        let show = try #require(StreamID("show"))
        rig.begin(show)
        let host = try rig.publish("bob", as: .host, in: show)
        rig.receive(.layersWanted(host, mid: "1", rids: ["f", "q"]))
        let told = try #require(rig.lastReply(to: host, "wanted"))
        #expect(told.mid == "1" && told.rids == ["f", "q"])
    }

    @Test func `a speaker's weak uplink is known from losses or from the client`() throws {
        var rig = LiveRig()
        let show = try #require(StreamID("show"))
        rig.begin(show)
        let host = try rig.publish("bob", as: .host, in: show)
        let viewer = Stage.Sender(id: try #require(ParticipantID("vic")), authority: .viewer)
        let watching = try rig.admit(
            rig.candidate(
                SessionRequest(purpose: .stage, stream: show, sender: viewer, offer: ""), gets: [.video]))
        for id in [host, watching] {
            rig.receive(.uplinkWeak(id))
            rig.say(#"{"type":"uplink","limitedBy":"bandwidth"}"#, by: id)
        }
        let weak = rig.notices.compactMap { if case .weakUplink(let id) = $0.notice { id } else { nil } }
        #expect(weak == [host, host])
        #expect(rig.lastReply(to: watching, "error")?.rule == "not-on-stage")
    }
}

@Suite struct `A published stream that loses its source` {
    private var rig = LiveRig()
    private let show: StreamID
    private let ann: ParticipantID
    private let bob: ParticipantID
    private let cid: ParticipantID

    init() throws {
        show = try #require(StreamID("show"))
        ann = try #require(ParticipantID("ann"))
        bob = try #require(ParticipantID("bob"))
        cid = try #require(ParticipantID("cid"))
        rig.begin(show, isPublished: true)
    }

    /// The first host's browser dies, and its session is lost.
    private mutating func lose(_ id: SessionID) {
        rig.receive(.closed(id, .consentLost))
    }

    @Test mutating func `has the next host on its stage for a source`() throws {
        let first = try rig.publish("ann", as: .host, in: show)
        _ = try rig.publish("eve", as: .speaker, in: show)
        let second = try rig.publish("bob", as: .host, in: show, isHost: false)
        _ = try rig.publish("cid", as: .host, in: show, isHost: false)
        #expect(rig.toldSources(of: show) == [ann])
        lose(first)
        #expect(rig.toldSources(of: show) == [ann, bob])
        #expect(rig.live[show]?.publisher == second)
        #expect(rig.live.sessions[second]?.source.isSuccessor == true)
        lose(second)
        #expect(rig.toldSources(of: show) == [ann, bob, cid])
    }

    @Test mutating func `is told to have none where nobody else came to host it`() throws {
        let first = try rig.publish("ann", as: .host, in: show)
        _ = try rig.publish("eve", as: .speaker, in: show)
        lose(first)
        #expect(rig.toldSources(of: show) == [ann, nil])
    }

    @Test mutating func `waits for its host where it was made`() throws {
        rig.begin(show)
        let first = try rig.publish("ann", as: .host, in: show)
        _ = try rig.publish("bob", as: .host, in: show, isHost: false)
        lose(first)
        #expect(rig.toldSources(of: show) == [ann, nil])
    }
}

@Suite struct `A viewer's session that lost its place` {
    private var rig = LiveRig()

    private mutating func enter() throws -> SessionID {
        let sender = Stage.Sender(id: try #require(ParticipantID("vic")), authority: .viewer)
        let reader = FeedReader(scope: .all, sender: sender, standing: .all)
        let wish = FeedWish(reader: reader, stream: nil, preload: .eager)
        let id = try rig.admit(
            rig.candidate(SessionRequest(feed: wish, offer: ""), gets: [.audio, .video, .audio, .video]))
        rig.receive(.connected(id, .aeadAES128GCM, nil))
        rig.receive(.controlOpened(id))
        return id
    }

    /// A page shows that the viewer is elsewhere by what came last.
    @Test mutating func `a session that lost its place is told so, and nothing after that`() throws {
        rig.begin(try #require(StreamID("show")))
        rig.takeNews()
        let quality = DeliveryQuality(estimate: 1_000_000, roundTrip: nil, cause: nil, pictures: [])
        let sessions = [try enter(), try enter()]
        rig.receive(.qualityChanged(sessions[0], quality))
        #expect(rig.lastReply(to: sessions[0])?.type == "quality")
        let newest = try enter()
        #expect(rig.lastReply(to: sessions[0])?.type == "replaced")
        rig.receive(.qualityChanged(sessions[0], quality))
        rig.say(#"{"type":"ping"}"#, by: sessions[0])
        #expect(rig.lastReply(to: sessions[0])?.type == "replaced")
        // Long enough for what is sent again after it was lost.
        rig.advance(by: .seconds(4))
        #expect(rig.opened.contains(sessions[0]))
        rig.advance(by: .seconds(1))
        #expect(rig.opened == [sessions[1], newest])
    }
}
