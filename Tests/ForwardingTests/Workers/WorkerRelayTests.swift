import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Publishers on worker 0, and who watches them on worker 1.
@Suite struct `A stream between workers` {
    private let rig: WorkerRig
    private let talk: StreamID
    private let ann: ParticipantID

    init() throws {
        rig = try WorkerRig(workers: 2)
        talk = try #require(StreamID("talk"))
        ann = try #require(ParticipantID("ann"))
    }

    private var home: Worker { rig.workers[0] }
    private var away: Worker { rig.workers[1] }

    /// The copies on worker 1 that belong to the programme.
    private var inProgramme: Set<TrackKey> {
        Set(away.relayed.all.filter { $0.value.programme == talk }.keys)
    }

    /// The number of slots on worker 1 for each copy that is in any.
    private var slotUses: [TrackKey: Int] { away.relayed.all.mapValues(\.slots).filter { $0.value > 0 } }

    /// What lingers on worker 1.
    private var lingering: Set<RelayRequests.Subject> { Set(away.requests.lingering.keys) }

    private func tracks(of id: SessionID, on worker: Int = 0) throws -> [TrackKey?] {
        try rig.session(id, on: worker).sources.map { $0.track.key }
    }

    private func closed(on worker: Int) -> [WorkerEvent] {
        rig.events(of: worker).filter { if case .closed = $0 { true } else { false } }
    }

    /// Whether the publisher's pictures go to worker 1.
    private func isRelayed(_ id: SessionID) throws -> Bool {
        try rig.session(id).sources[1].track.isRelayed(to: 1)
    }

    /// Sends a picture, and lets it arrive.
    private func send(_ id: SessionID, isKey: Bool = false) {
        rig.send("v", from: id, isKey: isKey)
        rig.endBatches()
    }

    // MARK: Programmes

    @Test func `reaches viewers of another worker who came first, and those who come later`() throws {
        let early = rig.view(talk, on: 1)
        rig.endBatches()
        let publisher = rig.publish(talk)
        rig.endBatches()
        let wanted = try tracks(of: publisher)
        #expect(try rig.carried(by: early, on: 1) == wanted)
        send(publisher, isKey: true)
        let slot = try rig.slot("v0", of: early, on: 1)
        #expect(slot.current != nil && rig.sent(to: slot) == 1)
        let late = rig.view(talk, on: 1)
        rig.endBatches()
        #expect(try rig.slot("v0", of: late, on: 1).counters.replays == 1, "the copy has the past")
        send(publisher)
        #expect(rig.sent(to: slot) == 2)
        #expect(home.statistics.packetsToWorkers == 2, "each packet crosses once, whoever watches")
        #expect(away.counters.packetsRelayed == 2 && away.counters.relayedInVain == 0)
    }

    @Test func `crosses to no worker on which nobody watches`() throws {
        let publisher = rig.publish(talk)
        _ = rig.view(StreamID("other"), on: 1)
        rig.endBatches()
        send(publisher, isKey: true)
        #expect(try !isRelayed(publisher))
        #expect(home.statistics.packetsToWorkers == 0 && away.relayed.all.isEmpty)
    }

    /// What was sent before is a group of pictures that the new copy begins with.
    @Test func `brings its past to a worker that has its first viewer`() throws {
        let publisher = rig.publish(talk)
        send(publisher, isKey: true)
        for _ in 0..<4 { send(publisher) }
        let viewer = rig.view(talk, on: 1)
        rig.endBatches()
        let slot = try rig.slot("v0", of: viewer, on: 1)
        let layer = try #require(slot.current)
        #expect(slot.counters.replays == 1 && layer.history.newest == 504)
        #expect(!rig.events().contains(.sessionKeyFrameWanted(publisher)))
    }

    @Test func `ends for the viewers of another worker when its publisher leaves`() throws {
        let viewer = rig.view(talk, on: 1)
        let publisher = rig.publish(talk)
        rig.endBatches()
        send(publisher, isKey: true)
        #expect(away.relayed.all.count == 2)
        #expect(inProgramme.count == 2)
        rig.perform(.close(publisher))
        rig.endBatches()
        #expect(try rig.carried(by: viewer, on: 1) == [nil, nil])
        #expect(away.relayed.all.isEmpty)
        let next = rig.publish(talk, on: 1)
        rig.endBatches()
        let wanted = try tracks(of: next, on: 1)
        #expect(try rig.carried(by: viewer, on: 1) == wanted, "the next one may be anywhere")
    }

    @Test func `goes to the later publisher, on whichever worker it is`() throws {
        let viewers = [rig.view(talk, on: 0), rig.view(talk, on: 1)]
        let first = rig.publish(talk, order: 205, on: 0)
        rig.endBatches()
        let second = rig.publish(talk, order: 207, on: 1)
        #expect(closed(on: 0).isEmpty, "it has not heard of it yet")
        rig.endBatches()
        #expect(closed(on: 0) == [.closed(first, .replaced)])
        let wanted = try tracks(of: second, on: 1)
        for (worker, viewer) in viewers.enumerated() {
            #expect(try rig.carried(by: viewer, on: worker) == wanted)
        }
        // Opened before the second, and connected after it.
        let third = rig.publish(talk, order: 206, on: 0)
        #expect(closed(on: 0) == [.closed(third, .replaced)])
        rig.endBatches()
        #expect(closed(on: 1).isEmpty)
        for (worker, viewer) in viewers.enumerated() {
            #expect(try rig.carried(by: viewer, on: worker) == wanted)
        }
    }

    /// Without viewers its worker does not hear of the later one by itself.
    @Test func `has no room for an earlier publisher who connects late on a worker without viewers`() throws {
        let second = rig.publish(talk, order: 207, on: 0)
        rig.endBatches()
        let first = rig.publish(talk, order: 206, on: 1)
        #expect(closed(on: 1).isEmpty, "it cannot know yet")
        rig.endBatches()
        #expect(closed(on: 1) == [.closed(first, .replaced)])
        #expect(closed(on: 0).isEmpty && home.programmes[talk]?.source?.session?.id == second)
        // A viewer there gets the later one.
        let viewer = rig.view(talk, on: 1)
        rig.endBatches()
        let wanted = try tracks(of: second)
        #expect(try rig.carried(by: viewer, on: 1) == wanted)
        send(second, isKey: true)
        #expect(try rig.sent(to: rig.slot("v0", of: viewer, on: 1)) == 1)
        rig.perform(.close(second))
        rig.endBatches()
        #expect(try rig.carried(by: viewer, on: 1) == [nil, nil])
        #expect(away.relayed.all.isEmpty)
    }

    @Test func `keeps no copies of a publisher who was replaced`() throws {
        let viewer = rig.view(talk, on: 1)
        let first = rig.publish(talk, order: 205)
        rig.endBatches()
        let second = rig.publish(talk, order: 207)
        rig.endBatches()
        #expect(closed(on: 0) == [.closed(first, .replaced)])
        let wanted = try tracks(of: second)
        #expect(try rig.carried(by: viewer, on: 1) == wanted)
        let (copies, present) = (Set(away.relayed.all.keys), Set(wanted.compactMap(\.self)))
        #expect(copies == present && inProgramme == present)
    }

    // MARK: After the last viewer

    @Test func `goes on for ten seconds after its last viewer, and then no longer`() throws {
        let publisher = rig.publish(talk)
        let viewer = rig.view(talk, on: 1)
        rig.endBatches()
        send(publisher, isKey: true)
        rig.perform(.close(viewer), on: 1)
        rig.endBatches()
        #expect(try isRelayed(publisher))
        rig.pass(.milliseconds(9_999))
        rig.endBatches()
        #expect(try isRelayed(publisher))
        rig.pass(.milliseconds(1_001))
        rig.endBatches()
        #expect(try !isRelayed(publisher))
        let layers = away.relayed.all.values.flatMap(\.track.layers)
        #expect(layers.isEmpty, "an incomplete copy is worth nothing")
        send(publisher)
        #expect(away.counters.packetsRelayed == 1)
    }

    @Test func `needs nothing from its publisher for a viewer who comes within ten seconds`() throws {
        let publisher = rig.publish(talk)
        let viewer = rig.view(talk, on: 1)
        rig.endBatches()
        rig.perform(.close(viewer), on: 1)
        rig.pass(.seconds(5))
        send(publisher, isKey: true)
        let next = rig.view(talk, on: 1)
        let slot = try rig.slot("v0", of: next, on: 1)
        #expect(slot.isReplaying, "before any other worker has heard of it")
        rig.pass(.seconds(20))
        rig.endBatches()
        #expect(try isRelayed(publisher), "it is needed again")
        #expect(lingering.isEmpty)
    }

    @Test func `is brought anew for a viewer who comes after that`() throws {
        let publisher = rig.publish(talk)
        let viewer = rig.view(talk, on: 1)
        rig.endBatches()
        rig.perform(.close(viewer), on: 1)
        rig.pass(.seconds(11))
        rig.endBatches()
        send(publisher, isKey: true)
        send(publisher)
        let next = rig.view(talk, on: 1)
        rig.endBatches()
        let wanted = try tracks(of: publisher)
        #expect(try rig.carried(by: next, on: 1) == wanted)
        let slot = try rig.slot("v0", of: next, on: 1)
        let layer = try #require(slot.current)
        #expect(slot.counters.replays == 1 && layer.history.newest == 501)
    }

    // MARK: Single tracks

    @Test func `has its tracks in slots of a stage for as long as one of them needs them`() throws {
        let guest = rig.publish(nil, stage: talk, participant: ann)
        let picture = try rig.track("v", of: guest)
        let viewer = rig.view(nil, pairs: 2, on: 1)
        func attach(_ track: PublishedTrack?, to mid: String) {
            rig.perform(.attach(viewer, mid: mid, track, maximumHeight: nil), on: 1)
            rig.endBatches()
        }
        attach(picture, to: "v0")
        attach(picture, to: "v1")
        attach(picture, to: "v1")
        #expect(try isRelayed(guest))
        #expect(slotUses == [picture.key: 2])
        attach(nil, to: "v0")
        attach(nil, to: "v0")
        rig.pass(.seconds(20))
        rig.endBatches()
        #expect(try isRelayed(guest), "the other slot needs it")
        send(guest, isKey: true)
        let slot = try rig.slot("v1", of: viewer, on: 1)
        #expect(slot.current?.track?.key == picture.key)
        rig.perform(.close(viewer), on: 1)
        rig.endBatches()
        #expect(slotUses.isEmpty)
        #expect(try isRelayed(guest), "somebody may come back")
        rig.pass(.seconds(11))
        rig.endBatches()
        #expect(try !isRelayed(guest))
        #expect(away.relayed.all.isEmpty)
    }

    @Test func `is not what a slot gets that cannot carry it`() throws {
        let guest = rig.publish(nil, stage: talk, participant: ann)
        let picture = try rig.track("v", of: guest)
        let viewer = rig.view(nil, on: 1)
        // Sound of pictures, of workers that there are not, of a track that has ended, and in no slot.
        let (plan, extensions) = (picture.plan, picture.extensions)
        let gone = [-1, 2, Int.max].map { worker in
            PublishedTrack(
                key: TrackKey(worker: worker, track: picture.key.track), plan: plan, extensions: extensions)
        }
        let ended = PublishedTrack(
            key: TrackKey(worker: 1, track: TrackID(number: 77)), plan: plan, extensions: extensions)
        rig.perform(.attach(viewer, mid: "a0", picture, maximumHeight: nil), on: 1)
        for track in gone + [ended] {
            rig.perform(.attach(viewer, mid: "v0", track, maximumHeight: nil), on: 1)
        }
        rig.perform(.attach(viewer, mid: "v9", picture, maximumHeight: nil), on: 1)
        rig.perform(.attach(rig.newID(), mid: "v0", picture, maximumHeight: nil), on: 1)
        rig.endBatches()
        #expect(try rig.carried(by: viewer, on: 1) == [nil, nil])
        #expect(away.relayed.all.isEmpty)
        #expect(try !isRelayed(guest))
    }

    @Test func `gives up one track of another worker for the next`() throws {
        let guests = [
            rig.publish(nil, stage: talk, participant: ann), rig.publish(nil, stage: talk, participant: ann),
        ]
        let pictures = try guests.map { try rig.track("v", of: $0) }
        let viewer = rig.view(nil, on: 1)
        for picture in pictures {
            rig.perform(.attach(viewer, mid: "v0", picture, maximumHeight: nil), on: 1)
        }
        rig.endBatches()
        #expect(slotUses == [pictures[1].key: 1])
        #expect(lingering == [.track(pictures[0].key)])
        // Back within ten seconds: it was relayed all the time.
        rig.perform(.attach(viewer, mid: "v0", pictures[0], maximumHeight: nil), on: 1)
        #expect(slotUses == [pictures[0].key: 1])
        #expect(lingering == [.track(pictures[1].key)])
        rig.pass(.seconds(11))
        rig.endBatches()
        #expect(try isRelayed(guests[0]))
        #expect(try !isRelayed(guests[1]))
    }

    /// A track that is part of a programme and in a slot of a stage at the same time.
    @Test func `keeps a copy that its programme needs when no slot does any more`() throws {
        let host = rig.publish(talk, stage: talk, participant: ann)
        let picture = try rig.track("v", of: host)
        let (viewer, speaker) = (rig.view(talk, on: 1), rig.view(nil, on: 1))
        rig.perform(.attach(speaker, mid: "v0", picture, maximumHeight: nil), on: 1)
        rig.endBatches()
        send(host, isKey: true)
        rig.perform(.close(speaker), on: 1)
        rig.pass(.seconds(11))
        rig.endBatches()
        #expect(try isRelayed(host))
        let slot = try rig.slot("v0", of: viewer, on: 1)
        let before = rig.sent(to: slot)
        send(host)
        let more = rig.sent(to: slot) - before
        #expect(more == 1 && away.counters.relayedInVain == 0)
        rig.perform(.close(host))
        rig.endBatches()
        #expect(away.relayed.all.isEmpty)
    }

    /// Whichever way a worker has come by a copy, it has the past.
    @Test(arguments: [true, false]) func `brings its past once, to slots or to viewers of the programme`(
        isSlotFirst: Bool
    ) throws {
        let host = rig.publish(talk, stage: talk, participant: ann)
        let picture = try rig.track("v", of: host)
        for number in 0..<3 { send(host, isKey: number == 0) }
        let speaker = rig.view(nil, on: 1)
        func attach() {
            rig.perform(.attach(speaker, mid: "v0", picture, maximumHeight: nil), on: 1)
            rig.endBatches()
        }
        if isSlotFirst { attach() }
        let viewer = rig.view(talk, on: 1)
        rig.endBatches()
        if !isSlotFirst { attach() }
        #expect(home.statistics.packetsToWorkers == 3)
        for session in [speaker, viewer] {
            #expect(try rig.slot("v0", of: session, on: 1).counters.replays == 1)
        }
        #expect(away.relayed.all[picture.key]?.slots == 1 && inProgramme.contains(picture.key))
    }

    // MARK: What viewers need

    @Test func `is asked for the key frames and renditions that viewers of another worker need`() throws {
        let viewer = rig.view(talk, on: 1)
        let publisher = rig.publish(talk)
        rig.endBatches()
        send(publisher)
        #expect(rig.events().contains(.sessionKeyFrameWanted(publisher)))
        let slot = try rig.slot("v0", of: viewer, on: 1)
        var told: [WorkerEvent] = []
        for _ in 0..<5 {
            slot.track?.needRendition(for: slot, at: rig.now)
            rig.endBatches()
            told += rig.events()
            rig.pass(.milliseconds(100))
        }
        let wanted = told.filter { if case .renditionWanted = $0 { true } else { false } }
        let picture = try rig.track("v", of: publisher)
        #expect(wanted == [.renditionWanted(publisher, picture, isWanted: true)])
    }
}
