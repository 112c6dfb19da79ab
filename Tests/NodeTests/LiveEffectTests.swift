import Base
import Crypto
import Peer
import Stage
import TestSupport
import Testing
import Transcoder
import Wire

@testable import Forwarding
@testable import Node

/// What a stage decides about people who have sessions, and when it decides it.
@Suite struct `The sessions of a stream` {
    private var rig = LiveRig()
    private let show: StreamID
    private let bob: ParticipantID

    init() throws {
        show = try #require(StreamID("show"))
        bob = try #require(ParticipantID("bob"))
    }

    /// Somebody who watches and is connected: on the stage's endpoint, or with a player.
    private mutating func watch(
        _ name: String, _ purpose: SessionRequest.Purpose = .stage
    ) throws -> SessionID {
        let sender = Stage.Sender(id: try #require(ParticipantID(name)), authority: .viewer)
        let request = SessionRequest(
            purpose: purpose, stream: show, sender: sender, offer: "", patience: .seconds(600))
        let id = try rig.admit(rig.candidate(request, gets: [.audio, .video]))
        rig.receive(.connected(id, .aeadAES128GCM, nil))
        return id
    }

    /// The stage has made it durable.
    private mutating func perform(_ effect: StageEffect) {
        let show = show
        rig.change { live, now in live.perform(effect, in: show, at: now) }
    }

    /// The stream ends, as its stage has told the directory before.
    private mutating func end() throws {
        var snapshot = try #require(rig.directory[show])
        snapshot.state = .ended
        rig.directory.update(snapshot)
        perform(.close)
    }

    private func isThere(_ id: SessionID) -> Bool { rig.opened.contains(id) }

    // MARK: People

    @Test mutating func `end with somebody who is expelled, wherever they have one`() throws {
        rig.begin(show)
        let host = try rig.publish("ann", as: .host, in: show)
        let speaks = try rig.publish("bob", as: .speaker, in: show)
        let plays = try watch("bob", .play)
        let viewer = try watch("vic")
        perform(.expel(bob, .banned))
        #expect(Set(rig.closed.map(\.session)) == [speaks, plays])
        #expect(rig.closed.allSatisfy { $0.reason == Rejection.banned.name })
        #expect(isThere(host) && isThere(viewer))
        let disconnected = rig.notices.compactMap { entry in
            if case .disconnect(let id) = entry.notice { id } else { nil }
        }
        #expect(Set(disconnected) == [speaks, plays])
        perform(.expel(bob, nil))
        #expect(rig.closed.count == 2, "nothing is left of them")
    }

    @Test mutating func `of somebody who leaves the stage end, but they may go on watching`() throws {
        rig.begin(show)
        _ = try rig.publish("ann", as: .host, in: show)
        let speaks = try rig.publish("bob", as: .speaker, in: show)
        let plays = try watch("bob", .play)
        perform(.retire(bob))
        #expect(rig.closed.map(\.session) == [speaks] && isThere(plays))
        #expect(rig.toldSources(of: show).count == 1, "the programme is the host's, as before")
    }

    @Test mutating func `pass a request to mute on to whom it concerns, on the stage alone`() throws {
        rig.begin(show)
        _ = try rig.publish("ann", as: .host, in: show)
        let speaks = try rig.publish("bob", as: .speaker, in: show)
        _ = try watch("bob", .play)
        let before = rig.told.count
        perform(.requestMute(of: bob, .audio, by: try #require(ParticipantID("ann"))))
        #expect(rig.told[before...].map(\.session) == [speaks])
        rig.change { $0.end(speaks, because: "deleted", at: $1) }
        let after = rig.told.count
        perform(.requestMute(of: bob, .audio, by: try #require(ParticipantID("ann"))))
        #expect(rig.told[after...].isEmpty)
    }

    // MARK: The end

    @Test mutating func `all end with a stream that was made, also of those who wait`() throws {
        rig.begin(show)
        let host = try rig.publish("ann", as: .host, in: show)
        let speaks = try rig.publish("bob", as: .speaker, in: show)
        let viewers = [try watch("vic"), try watch("eve", .play)]
        try end()
        #expect(Set(rig.closed.map(\.session)) == Set([host, speaks] + viewers))
        #expect(rig.closed.allSatisfy { $0.reason == "ended" })
        rig.advance(by: .seconds(1))
        #expect(rig.isClear && rig.live[show] == nil)
    }

    @Test mutating func `of viewers stay a minute where an encoder may come back, and no longer`() throws {
        rig.begin(show, isPublished: true)
        let host = try rig.publish("ann", as: .host, in: show)
        let viewers = [try watch("vic"), try watch("eve", .play)]
        try end()
        #expect(rig.closed.map(\.session) == [host])
        rig.advance(by: .seconds(59))
        #expect(viewers.allSatisfy(isThere))
        rig.advance(by: .seconds(1))
        #expect(Set(rig.closed.dropFirst().map(\.session)) == Set(viewers))
        rig.advance(by: .seconds(1))
        #expect(rig.isClear && rig.live[show] == nil)
    }

    @Test mutating func `sessions of viewers stay if the encoder comes back`() throws {
        rig.begin(show, isPublished: true)
        _ = try rig.publish("ann", as: .host, in: show)
        let viewer = try watch("vic")
        try end()
        rig.advance(by: .seconds(30))
        rig.begin(show, isPublished: true)
        let again = try rig.publish("ann", as: .host, in: show)
        rig.advance(by: .seconds(120))
        #expect(isThere(viewer) && isThere(again))
        #expect(rig.lastReply(to: viewer, "slots")?.slots?.map(\.participant) == ["ann", "ann"])
        // The minute is counted anew.
        try end()
        rig.advance(by: .seconds(59))
        #expect(isThere(viewer))
        rig.advance(by: .seconds(2))
        #expect(!isThere(viewer))
    }

    /// Nothing was ever lost then from which to count.
    @Test mutating func `of viewers end a minute after a stream that never had a source`() throws {
        rig.begin(show, isPublished: true)
        let viewer = try watch("vic")
        rig.advance(by: .seconds(120))
        #expect(isThere(viewer), "the stream may still begin")
        try end()
        rig.advance(by: .seconds(59))
        #expect(isThere(viewer))
        rig.advance(by: .seconds(1))
        #expect(!isThere(viewer))
        rig.advance(by: .seconds(1))
        #expect(rig.isClear && rig.live[show] == nil)
    }

    // MARK: What comes late

    /// Each is on its way while its session, stream or injection ends.
    @Test mutating func `late events about ended sessions do nothing`() throws {
        rig.begin(show, .composed)
        let viewer = try watch("vic")
        let stage = [
            try rig.publish("ann", as: .host, in: show), try rig.publish("bob", as: .speaker, in: show),
        ]
        rig.advance(by: .milliseconds(200))
        let injection = try #require(rig.injections.keys.first)
        for id in stage + [viewer] { rig.change { $0.end(id, because: "deleted", at: $1) } }
        rig.advance(by: .seconds(20))
        #expect(rig.isClear)
        let track = LiveRig.track(9, on: 0)
        let now = rig.now
        for id in stage + [viewer] {
            let late: [WorkerEvent] = [
                .checked(id), .connected(id, .aeadAES128GCM, nil), .mediaStarted(id), .published(id, [track]),
                .sourceChanged(id, mid: "1", isActive: true), .voice(id, level: 20), .uplinkWeak(id),
                .layersWanted(id, mid: "1", rids: ["f"]), .controlOpened(id), .closed(id, .consentLost),
                .controlMessage(id, DataChannelMessage(#"{"type":"ping"}"#)),
                .renditionWanted(id, track, isWanted: false),
            ]
            for event in late {
                let actions = rig.live.receive(event, at: now)
                #expect(actions.isEmpty, "\(event)")
            }
        }
        let others: [WorkerEvent] = [
            .injected(injection, [track]), .keyFrameWanted(injection, source: 0, layer: 0), .passed(99),
        ]
        for event in others {
            let actions = rig.live.receive(event, at: now)
            #expect(actions.isEmpty, "\(event)")
        }
        #expect(rig.live[show] == nil && rig.live.sessions.count == 0)
    }

    @Test mutating func `effects of a stage without sessions do nothing`() throws {
        rig.begin(show)
        let now = rig.now
        let effects: [StageEffect] = [
            .requestMute(of: bob, .video, by: bob), .showMute(of: bob, audio: true, video: true),
            .setProgramme(.composed), .retire(bob), .expel(bob, nil), .close,
        ]
        for effect in effects {
            let actions = rig.live.perform(effect, in: show, at: now)
            let posted = actions.filter { action in
                if case .programmeChanged = action { false } else { true }
            }
            #expect(posted.isEmpty, "\(effect)")
        }
        #expect(rig.live[show] == nil)
    }

    // MARK: Limits

    /// Why a candidate is refused now; nil if it is not.
    private mutating func refusal(of candidate: SessionCandidate) -> SessionRefusal? {
        let now = rig.now
        do throws(SessionRefusal) {
            _ = try rig.live.admit(candidate, at: now)
            return nil
        } catch {
            return error
        }
    }

    private mutating func player(_ name: String?) throws -> SessionCandidate {
        let id = name.flatMap { ParticipantID($0) }
        let sender = id.map { Stage.Sender(id: $0, authority: .viewer) }
        return rig.candidate(
            SessionRequest(
                purpose: .play, stream: show, sender: sender, offer: "", patience: .seconds(60)),
            gets: [.audio, .video])
    }

    @Test mutating func `sessions stay when the limit is lowered, and no new ones come`() throws {
        rig.begin(show)
        let viewers = [try watch("vic"), try watch("eve")]
        var limits = rig.live.limits
        limits.sessions = 1
        rig.live.setLimits(limits)
        #expect(viewers.allSatisfy(isThere))
        let next = try player("cid")
        let first = refusal(of: next)
        #expect(first == .overloaded)
        #expect(rig.live.sessions.count == 2, "the one that was refused has left nothing")
        limits.sessions = 10
        rig.live.setLimits(limits)
        let second = refusal(of: next)
        #expect(second == nil)
    }

    /// Of ten places, one is for those who publish, and one for those with a token.
    @Test mutating func `have places for those who publish, and for those whom somebody knows`() throws {
        rig.begin(show)
        var limits = rig.live.limits
        limits.sessions = 10
        rig.live.setLimits(limits)
        let names: [String?] = Array(repeating: nil, count: 9) + ["vic", "eve"]
        var refused: [SessionRefusal?] = []
        for name in names {
            let candidate = try player(name)
            refused.append(refusal(of: candidate))
        }
        var expected: [SessionRefusal?] = Array(repeating: nil, count: 8)
        expected += [.overloaded, nil, .overloaded]
        #expect(refused == expected)
        let host = try rig.publish("ann", as: .host, in: show)
        #expect(rig.live[show]?.publisher == host)
    }

    @Test(arguments: [false, true])
    mutating func `begin no more once the node stops, and nothing is made for those there are`(
        isStopping: Bool
    ) throws {
        rig.begin(show, .composed)
        let viewer = try watch("vic")
        _ = try rig.publish("ann", as: .host, in: show)
        let speaker = Stage.Sender(id: bob, authority: .speaker)
        let second = try rig.admit(
            rig.candidate(
                SessionRequest(purpose: .stage, stream: show, sender: speaker, offer: ""),
                sends: [.audio, .video], gets: [.audio, .video]))
        let late = try player("eve")
        if isStopping { rig.live.stop() }
        let refused = refusal(of: late)
        #expect(refused == (isStopping ? SessionRefusal.stopping : nil))
        // Who was admitted before connects now, and is the second in a composed picture.
        let worker = try #require(rig.live.sessions[second]?.worker)
        let tracks = LiveRig.plan(sends: [.audio, .video], gets: []).sources.enumerated().map { index, plan in
            PublishedTrack(
                key: TrackKey(worker: worker, track: TrackID(number: UInt64(70 + index))), plan: plan,
                extensions: ExtensionIDs())
        }
        rig.receive(.connected(second, .aeadAES128GCM, nil))
        rig.receive(.published(second, tracks))
        for track in tracks { rig.receive(.sourceChanged(second, mid: track.plan.mid, isActive: true)) }
        rig.receive(.renditionWanted(second, tracks[1], isWanted: true))
        rig.advance(by: .seconds(1))
        #expect(rig.jobs.isEmpty == isStopping && rig.renditionJobs.isEmpty == isStopping)
        #expect(rig.injections.count == (isStopping ? 0 : 2))
        #expect(isThere(viewer) && isThere(second))
    }
}
