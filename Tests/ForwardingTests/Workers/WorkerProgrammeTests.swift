import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// What the viewers of a stream get on one worker, whoever comes and goes.
@Suite struct `A stream on a worker` {
    private let rig: WorkerRig
    private let talk: StreamID
    private let ann: ParticipantID

    init() throws {
        rig = try WorkerRig()
        talk = try #require(StreamID("talk"))
        ann = try #require(ParticipantID("ann"))
    }

    private var worker: Worker { rig.workers[0] }

    private func tracks(of id: SessionID) throws -> [TrackKey?] {
        try rig.session(id).sources.map { $0.track.key }
    }

    private func closed() -> [WorkerEvent] {
        rig.events().filter { if case .closed = $0 { true } else { false } }
    }

    // MARK: Sources

    @Test func `is carried by the slots of who comes before its publisher and who comes after`() throws {
        let early = rig.view(talk)
        #expect(try rig.carried(by: early) == [nil, nil])
        let publisher = rig.publish(talk)
        let late = rig.view(talk)
        let wanted = try tracks(of: publisher)
        #expect(try rig.carried(by: early) == wanted)
        #expect(try rig.carried(by: late) == wanted)
        // Nobody of another stream gets it.
        let other = rig.view(StreamID("other"))
        #expect(try rig.carried(by: other) == [nil, nil])
    }

    @Test func `waits for its next publisher when one leaves`() throws {
        let viewer = rig.view(talk)
        rig.perform(.close(rig.publish(talk)))
        #expect(try rig.carried(by: viewer) == [nil, nil])
        #expect(worker.published.isEmpty)
        let next = rig.publish(talk)
        let wanted = try tracks(of: next)
        #expect(try rig.carried(by: viewer) == wanted)
        rig.perform(.close(next))
        #expect(!worker.programmes.isEmpty, "somebody waits")
        rig.perform(.close(viewer))
        #expect(worker.programmes.isEmpty && worker.sessions.isEmpty)
    }

    @Test func `goes to the later of two publishers, whichever connects first`() throws {
        let viewer = rig.view(talk)
        let first = rig.publish(talk, order: 205)
        let second = rig.publish(talk, order: 207)
        #expect(closed() == [.closed(first, .replaced)])
        let wanted = try tracks(of: second)
        #expect(try rig.carried(by: viewer) == wanted)
        // This one was opened before the second, and took longer to connect.
        let third = rig.publish(talk, order: 206)
        #expect(closed() == [.closed(third, .replaced)])
        #expect(try rig.carried(by: viewer) == wanted)
        #expect(worker.programmes[talk]?.source?.session?.id == second)
        #expect(worker.published.count == 2, "what they published is gone with them")
    }

    @Test func `goes on with somebody on its stage whom control makes its source`() throws {
        let viewer = rig.view(talk)
        let guest = rig.publish(nil, stage: talk, participant: ann)
        #expect(try rig.carried(by: viewer) == [nil, nil])
        let published = try [rig.track("a", of: guest), rig.track("v", of: guest)]
        #expect(rig.events().contains(.published(guest, published)))
        rig.perform(.makeSource(guest, order: 500))
        let wanted = try tracks(of: guest)
        #expect(try rig.carried(by: viewer) == wanted)
        // It is that already, and keeps its order.
        rig.perform(.makeSource(guest, order: 900))
        let order = try rig.session(guest).order
        #expect(order == 500)
        let later = rig.publish(talk, order: 501)
        #expect(closed() == [.closed(guest, .replaced)])
        #expect(worker.stages.isEmpty && worker.programmes[talk]?.source?.session?.id == later)
    }

    @Test func `is made of nobody who is not on a stage, nor of nobody at all`() throws {
        let viewer = rig.view(talk)
        rig.perform(.makeSource(viewer, order: 500))
        rig.perform(.makeSource(rig.newID(), order: 501))
        #expect(worker.programmes[talk]?.source == nil)
        let session = try rig.session(viewer)
        #expect(session.publishes == nil && session.order != 500)
    }

    // MARK: What control chooses

    @Test func `is what control chooses of a kind, and the source's of the other`() throws {
        let viewer = rig.view(talk)
        let host = rig.publish(talk)
        let guest = rig.publish(nil, stage: talk, participant: ann)
        let (own, others) = (try tracks(of: host), try tracks(of: guest))
        let voice = try rig.track("a", of: guest)
        rig.perform(.setProgramme(talk, [voice]))
        #expect(try rig.carried(by: viewer) == [others[0], own[1]])
        // Who comes now gets the same.
        let late = rig.view(talk)
        #expect(try rig.carried(by: late) == [others[0], own[1]])
        rig.perform(.setProgramme(talk, [try rig.track("v", of: guest)]))
        #expect(try rig.carried(by: viewer) == [own[0], others[1]])
        rig.perform(.setProgramme(talk, []))
        #expect(try rig.carried(by: viewer) == own)
        #expect(try rig.carried(by: late) == own)
    }

    @Test func `keeps what control chose when its source leaves and the next one comes`() throws {
        let viewer = rig.view(talk)
        let host = rig.publish(talk)
        let guest = rig.publish(nil, stage: talk, participant: ann)
        let voice = try rig.track("a", of: guest)
        rig.perform(.setProgramme(talk, [voice]))
        rig.perform(.close(host))
        #expect(try rig.carried(by: viewer) == [voice.key, nil])
        let next = rig.publish(talk)
        let picture = try tracks(of: next)[1]
        #expect(try rig.carried(by: viewer) == [voice.key, picture])
        rig.perform(.close(next))
        rig.perform(.setProgramme(talk, []))
        #expect(try rig.carried(by: viewer) == [nil, nil])
    }

    @Test func `keeps no memory of a choice for viewers who never came`() throws {
        let guest = rig.publish(nil, stage: talk, participant: ann)
        rig.perform(.setProgramme(talk, [try rig.track("a", of: guest)]))
        #expect(worker.programmes.count == 1)
        rig.perform(.setProgramme(talk, []))
        #expect(worker.programmes.isEmpty)
    }

    // MARK: The past

    @Test func `begins with its latest key frame for who comes later, unless the past is forgotten`() throws {
        let publisher = rig.publish(talk)
        rig.send("v", from: publisher, isKey: true)
        rig.send("v", from: publisher)
        let shown = try rig.slot("v0", of: rig.view(talk))
        #expect(shown.isReplaying)
        rig.perform(.flush(talk))
        #expect(!shown.isReplaying && shown.isStopped, "and who was being shown it is no more")
        let late = try rig.slot("v0", of: rig.view(talk))
        #expect(!late.isReplaying && late.current == nil && late.awaited != nil)
        rig.send("v", from: publisher, isKey: true)
        #expect(late.current != nil && shown.current != nil && !shown.isStopped)
        #expect(!late.isReplaying && !shown.isReplaying)
        // Of another stream nothing is forgotten, nor of one that there is not.
        rig.perform(.flush(try #require(StreamID("other"))))
        let last = try rig.slot("v0", of: rig.view(talk))
        #expect(last.isReplaying)
    }

    @Test func `forgets the past of what control chose as well`() throws {
        _ = rig.publish(talk)
        let guest = rig.publish(nil, stage: talk, participant: ann)
        rig.send("v", from: guest, isKey: true)
        rig.perform(.setProgramme(talk, [try rig.track("v", of: guest)]))
        rig.perform(.flush(talk))
        let slot = try rig.slot("v0", of: rig.view(talk))
        #expect(!slot.isReplaying && slot.awaited != nil)
    }

    // MARK: The end

    @Test func `takes its viewers with it when it does not come back, and nobody of the feed`() throws {
        let publisher = rig.publish(talk)
        let viewers = [rig.view(talk), rig.view(talk)]
        let other = rig.view(StreamID("other"))
        let feed = rig.view(nil, pairs: 2)
        rig.perform(.seat(feed, pair: 0, talk, isPreview: false, requested: nil))
        _ = rig.events()
        rig.perform(.dismissFollowers(talk))
        #expect(closed() == [.closed(viewers[0], .ended), .closed(viewers[1], .ended)])
        #expect(Set(worker.sessions.keys) == [publisher, other, feed])
        let wanted = try tracks(of: publisher)
        #expect(try Array(rig.carried(by: feed).prefix(2)) == wanted)
        rig.perform(.dismissFollowers(talk))
        rig.perform(.dismissFollowers(try #require(StreamID("nothing"))))
        #expect(closed().isEmpty)
    }

    @Test func `ends with all sessions, the earliest first`() {
        let second = rig.publish(talk, order: 302)
        let first = rig.publish(StreamID("other"), order: 301)
        let third = rig.view(talk)
        rig.perform(.close(rig.newID()))
        _ = rig.events()
        var sink = DiscardingSink()
        worker.closeAll(at: rig.now, into: &sink)
        let ended: [WorkerEvent] = [third, first, second].map { .closed($0, .ended) }
        #expect(closed() == ended)
        #expect(worker.sessions.isEmpty && worker.published.isEmpty && worker.programmes.isEmpty)
        worker.closeAll(at: rig.now, into: &sink)
        #expect(closed().isEmpty)
    }
}
