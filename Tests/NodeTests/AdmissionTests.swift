import Base
import Forwarding
import Peer
import Stage
import StoryFeed
import TestSupport
import Testing
import Wire

@testable import Node

@Suite struct `A session is admitted` {
    private var rig = LiveRig()
    private let show: StreamID
    private let ann: ParticipantID
    private let bob: ParticipantID
    private let now = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000))

    init() throws {
        show = try #require(StreamID("show"))
        ann = try #require(ParticipantID("ann"))
        bob = try #require(ParticipantID("bob"))
        rig.begin(show)
    }

    private func request(
        _ purpose: SessionRequest.Purpose, _ sender: Stage.Sender? = nil, patience: Duration? = .seconds(9)
    ) -> SessionRequest {
        SessionRequest(purpose: purpose, stream: show, sender: sender, offer: "", patience: patience)
    }

    /// What is durable of a stream that ann made and that is live, with bob on its stage.
    private func record(_ change: (inout Stage) throws -> Void = { _ in }) throws -> StageRecord {
        var stage = try Stage.create(
            show, origin: .made, host: ann, hostName: nil, edit: StageEdit(), at: now
        ).stage
        let host = Stage.Sender(id: ann, authority: .host)
        let speaker = Stage.Sender(id: bob, authority: .speaker)
        _ = try stage.apply(.goLive, from: host, at: now)
        _ = try stage.apply(.publish, from: speaker, at: now)
        try change(&stage)
        return stage.record
    }

    private func apply(_ command: Stage.Command, in stage: inout Stage) throws {
        _ = try stage.apply(command, from: Stage.Sender(id: ann, authority: .host), at: now)
    }

    /// What comes of bob's wish to publish, or to watch, when this is durable by then.
    private mutating func refusal(
        of purpose: SessionRequest.Purpose, as authority: Stage.Sender.Authority = .speaker,
        link: Stage.Link? = nil, wasPresent: Bool = false, _ record: StageRecord
    ) -> SessionRefusal? {
        let sender = Stage.Sender(id: bob, authority: authority, link: link)
        let candidate = rig.candidate(
            request(purpose, sender), sends: purpose == .stage ? [.audio] : [], gets: [.audio],
            clearance: SessionCandidate.Clearance(record: record, wasPresent: wasPresent))
        let before = rig.live.sessions.count
        do {
            _ = try rig.admit(candidate)
            return nil
        } catch {
            #expect(rig.live.sessions.count == before && rig.live.sessions[candidate.id] == nil)
            return error as? SessionRefusal
        }
    }

    @Test mutating func `where its stage has not changed its mind meanwhile`() throws {
        let record = try record()
        #expect(refusal(of: .stage, record) == nil)
        #expect(refusal(of: .play, as: .viewer, record) == nil)
        #expect(rig.live[show]?.all.count == 2)
    }

    @Test mutating func `not when somebody was banned while their offer was read`() throws {
        let record = try record { try apply(.ban(bob), in: &$0) }
        for purpose in [SessionRequest.Purpose.stage, .play] {
            #expect(refusal(of: purpose, record) == .stage(.rejected(.banned)))
        }
        // Operators are kept out of nothing, but are not on stage for that.
        #expect(refusal(of: .play, as: .admin, record) == nil)
        #expect(rig.live[show]?.room == nil)
    }

    @Test mutating func `not on a stage that somebody was moved from meanwhile`() throws {
        let record = try record { try apply(.moveToViewers(bob), in: &$0) }
        #expect(refusal(of: .stage, record) == .stage(.rejected(.notOnStage)))
        #expect(refusal(of: .stage, as: .viewer, record) == nil)
        #expect(refusal(of: .play, record) == nil)
    }

    @Test mutating func `not by a link that was revoked meanwhile, but for who was there`() throws {
        let record = try record {
            try apply(.moveToViewers(bob), in: &$0)
            try apply(.revokeLinks(speakers: true, viewers: true), in: &$0)
        }
        let link = Stage.Link(makesSpeakers: false, issued: Int(now.wall.milliseconds / 1_000) - 5)
        #expect(refusal(of: .play, as: .viewer, link: link, record) == .stage(.rejected(.linkRevoked)))
        #expect(refusal(of: .play, as: .viewer, link: link, wasPresent: true, record) == nil)
    }

    /// Whatever is durable later comes as an effect, which finds the session.
    @Test mutating func `and ended by a ban that comes a moment later`() throws {
        let record = try record()
        for purpose in [SessionRequest.Purpose.stage, .play] {
            #expect(refusal(of: purpose, record) == nil)
        }
        let (show, bob) = (show, bob)
        rig.change { $0.perform(.expel(bob, .banned), in: show, at: $1) }
        #expect(rig.opened.isEmpty && rig.closed.map(\.reason) == ["banned", "banned"])
        rig.advance(by: .seconds(1))
        #expect(rig.isClear)
    }

    /// Somebody is back on stage, or the stream has begun again under its name, when what ended that is performed.
    @Test mutating func `and not ended by what was decided before it came`() throws {
        let (show, bob) = (show, bob)
        for effect in [StageEffect.retire(bob), .expel(bob, nil), .close] {
            let candidate = rig.candidate(
                request(.stage, Stage.Sender(id: bob, authority: .speaker)), sends: [.audio],
                clearance: SessionCandidate.Clearance(record: try record(), effect: 7))
            let id = try rig.admit(candidate)
            rig.change { $0.perform(effect, in: show, number: 7, at: $1) }
            #expect(rig.opened == [id], "\(effect)")
            rig.change { $0.perform(effect, in: show, number: 8, at: $1) }
            #expect(rig.opened.isEmpty, "\(effect)")
        }
    }

    @Test mutating func `not to a stream that has ended meanwhile, unless it may begin again`() throws {
        let ended = try record { try apply(.end, in: &$0) }
        for purpose in [SessionRequest.Purpose.stage, .play] {
            #expect(refusal(of: purpose, ended) == .stage(.rejected(.ended)))
        }
        let anonymous = rig.candidate(
            request(.play), gets: [.video], clearance: SessionCandidate.Clearance(record: ended))
        #expect(throws: SessionRefusal.stage(.rejected(.ended))) { _ = try rig.admit(anonymous) }
        var published = try Stage.create(
            show, origin: .published, host: ann, hostName: nil, edit: StageEdit(), at: now
        ).stage
        try apply(.end, in: &published)
        #expect(refusal(of: .play, as: .viewer, published.record) == nil)
        // Nothing would end a publisher there: the end was durable before they came.
        for purpose in [SessionRequest.Purpose.publish, .stage] {
            #expect(refusal(of: purpose, as: .host, published.record) == .stage(.rejected(.ended)))
        }
    }

    @Test mutating func `without waiting only where there is something to see`() throws {
        let hurried = request(.play, patience: nil)
        #expect(throws: SessionRefusal.noPublisher) {
            _ = try rig.admit(rig.candidate(hurried, gets: [.video]))
        }
        let host = try rig.publish("ann", as: .host, in: show)
        let viewer = try rig.admit(rig.candidate(hurried, gets: [.video]))
        rig.receive(.closed(host, .closedByPeer))
        #expect(throws: SessionRefusal.noPublisher) {
            _ = try rig.admit(rig.candidate(hurried, gets: [.video]))
        }
        #expect(rig.live.sessions[viewer] != nil)
    }

    @Test mutating func `not on a stage that is full, nor by a server that stops`() throws {
        for number in 0..<StageRoom.maximumSessions {
            _ = try rig.publish("p\(number)", as: .speaker, in: show, [.audio])
        }
        let speaker = Stage.Sender(id: bob, authority: .speaker)
        let candidate = rig.candidate(request(.stage, speaker), sends: [.audio])
        #expect(throws: SessionRefusal.overloaded) { _ = try rig.admit(candidate) }
        let viewer = rig.candidate(request(.play), gets: [.video])
        rig.live.stop()
        #expect(throws: SessionRefusal.stopping) { _ = try rig.admit(viewer) }
    }

    @Test mutating func `to the programme that its stream's settings say`() throws {
        rig.begin(show, .activeSpeaker)
        _ = try rig.publish("ann", as: .host, in: show)
        let second = try rig.publish("bob", as: .speaker, in: show)
        rig.receive(.voice(second, level: 100))
        rig.advance(by: .seconds(1))
        #expect(rig.live.pictureSource(of: show) == nil)
        rig.takeNews()
        #expect(rig.live.pictureSource(of: show)?.session == second)
    }

    /// A stage without sessions forgets it, as a restart does; the record does not.
    @Test mutating func `with what its participant had muted before`() throws {
        let speaker = Stage.Sender(id: bob, authority: .speaker)
        let durable = try record { _ = try $0.apply(.setMuted(.video, true), from: speaker, at: now) }
        let candidate = rig.candidate(
            request(.stage, speaker), sends: [.audio, .video], gets: [.audio, .video],
            clearance: SessionCandidate.Clearance(record: durable))
        _ = try rig.admit(candidate)
        #expect(rig.live[show]?.room?.mute(of: bob) == StageRoom.Mute(video: true))
    }

    /// Against a count of its own: who has a place, and who is refused one, while people come and go.
    @Test(arguments: 0..<50 as Range<UInt64>)
    mutating func `while there is a place, whoever comes and goes`(seed: UInt64) throws {
        rig = LiveRig { ($0.limits.sessions, $0.limits.sessionsOfAddress) = (20, 6) }
        rig.begin(show)
        var chance = SeededGenerator(seed: seed)
        var places: [(id: SessionID, address: IPAddress?)] = []
        let addresses = ["198.51.100.1", "198.51.100.2", "198.51.100.3"].map { IPAddress($0) }
        for step in 0..<200 {
            if let place = places.randomElement(using: &chance), Bool.random(using: &chance) {
                rig.change { $0.end(place.id, because: "deleted", at: $1) }
                places.removeAll { $0.id == place.id }
                continue
            }
            let isStranger = Bool.random(using: &chance)
            let address = addresses.randomElement(using: &chance) ?? nil
            let sender = ParticipantID("v\(step)").map { Stage.Sender(id: $0, authority: .viewer) }
            let request = SessionRequest(
                purpose: .play, stream: show, sender: isStranger ? nil : sender, offer: "",
                patience: .seconds(900), clientAddress: address)
            let ofAddress = places.count { $0.address == address }
            let expected: SessionRefusal? =
                places.count >= (isStranger ? 16 : 18)
                ? .overloaded : isStranger && ofAddress >= 6 ? .tooManySessions : nil
            var refusal: SessionRefusal?
            do {
                let id = try rig.admit(rig.candidate(request, gets: [.video]))
                places.append((id, isStranger ? address : nil))
            } catch {
                refusal = error as? SessionRefusal
            }
            #expect(refusal == expected)
            #expect(rig.opened == Set(places.map(\.id)))
            #expect(rig.live[show]?.all ?? [] == rig.opened)
        }
        for place in places { rig.change { $0.end(place.id, because: "deleted", at: $1) } }
        rig.advance(by: .seconds(1))
        #expect(rig.isClear && rig.live[show] == nil)
    }
}
