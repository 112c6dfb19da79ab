import Base
import Forwarding
import Peer
import Stage
import TestSupport
import Testing
import Transcoder

@testable import Node

@Suite struct `What waits for the node` {
    private let show: StreamID
    private let ann: ParticipantID
    private var random = SeededGenerator(seed: 1)

    init() throws {
        show = try #require(StreamID("show"))
        ann = try #require(ParticipantID("ann"))
    }

    private mutating func sessions(_ count: Int) -> [SessionID] {
        (0..<count).map { _ in SessionID(using: &random) }
    }

    @Test mutating func `the inbox is bounded, except for events that cannot be repeated`() {
        let inbox = Inbox<WorkerEvent>(limit: 100)
        let ids = sessions(101)
        for id in ids.prefix(100) { #expect(inbox.put(.voice(id, level: 1))) }
        #expect(!inbox.put(.voice(ids[100], level: 1)))
        #expect(inbox.put(.checked(ids[100])))
        #expect(!inbox.put(.begun(ids[100], pair: 0, .feed, timestamp: 0)))
        #expect(inbox.counters == InboxCounters(waiting: 101, dropped: 2))
        #expect(inbox.takeAll().count == 101)
        #expect(inbox.put(.voice(ids[100], level: 1)))
        #expect(inbox.counters == InboxCounters(waiting: 1, dropped: 2))
    }

    @Test mutating func `events stay in order, and a newer one replaces the older one of its kind`() {
        let inbox = Inbox<WorkerEvent>(limit: 100)
        let ids = sessions(2)
        inbox.put(.voice(ids[0], level: 1))
        inbox.put(.checked(ids[0]))
        inbox.put(.voice(ids[1], level: 2))
        inbox.put(.voice(ids[0], level: 3))
        inbox.put(.checked(ids[0]))
        #expect(
            inbox.takeAll() == [
                .voice(ids[0], level: 3), .checked(ids[0]), .voice(ids[1], level: 2), .checked(ids[0]),
            ])
        // An event that was taken cannot be replaced.
        inbox.put(.voice(ids[1], level: 4))
        #expect(inbox.takeAll() == [.voice(ids[1], level: 4)])
        #expect(inbox.takeAll().isEmpty)
    }

    @Test mutating func `does not grow with what one publisher or viewer does`() {
        let inboxes = NodeInboxes()
        let id = sessions(1)[0]
        for round in 0..<20_000 {
            inboxes.workers.put(.sourceChanged(id, mid: "1", isActive: round % 2 == 0))
            inboxes.workers.put(.controlOpened(id))
            inboxes.stages.put(
                StageOrder(effect: .showMute(of: ann, audio: round % 2 == 0, video: false), stream: show))
            inboxes.stages.put(StageOrder(effect: .requestMute(of: ann, .audio, by: ann), stream: show))
            inboxes.stages.put(StageOrder(effect: .setProgramme(.host), stream: show))
            inboxes.stages.put(StageOrder(effect: .retire(ann), stream: show))
            let place = PresenceChange.Place(stream: show, sender: nil)
            inboxes.presence.put(PresenceChange(session: id, place: round % 2 == 0 ? place : nil))
        }
        #expect(inboxes.workers.takeAll().count == 2)
        let orders = inboxes.stages.takeAll().map(\.effect)
        #expect(
            orders == [
                .showMute(of: ann, audio: false, video: false), .requestMute(of: ann, .audio, by: ann),
                .setProgramme(.host), .retire(ann),
            ])
        let changes = inboxes.presence.takeAll()
        #expect(changes.count == 1 && changes.first?.place == nil)
    }

    @Test func `does not grow with what a job of the transcoder says`() {
        let inboxes = NodeInboxes()
        let (job, run) = (JobID(number: 1), PauseDesk.Run(number: 2))
        for number in 0..<20_000 {
            inboxes.compositions.put(CompositionNews(stream: show, event: .status(job, CompositionStatus())))
            inboxes.compositions.put(
                CompositionNews(stream: show, event: .keyFrameWanted(job, InputID(number: UInt64(number)))))
            inboxes.pauses.put(PauseNews(stream: show, event: number % 2 == 0 ? .playable(run) : .lost(run)))
            inboxes.programmes.put(ProgrammeChange(stream: show))
        }
        inboxes.compositions.put(CompositionNews(stream: show, event: .lost(job)))
        #expect(inboxes.compositions.counters.waiting == inboxes.compositions.limit + 1)
        #expect(inboxes.compositions.counters.dropped > 18_000)
        guard case .lost = inboxes.compositions.takeAll().last?.event else {
            Issue.record("the end was dropped")
            return
        }
        let pauses = inboxes.pauses.takeAll()
        guard pauses.count == 1, case .lost = pauses.first?.event else {
            Issue.record("the latest word is not what waits")
            return
        }
        #expect(inboxes.programmes.counters == InboxCounters(waiting: 1))
    }

    @Test mutating func `is counted by the name of its queue`() async throws {
        let node = try Node(
            configuration: NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0)), log: .silent)
        for id in sessions(node.inboxes.workers.limit + 3) { node.inboxes.workers.put(.voice(id, level: 1)) }
        let counters = node.inboxCounters
        #expect(
            counters.keys.sorted() == [
                "compositions", "duels", "ingest", "pauses", "presence", "programmes", "recorded",
                "renditions",
                "stages", "workers",
            ])
        #expect(counters["workers"] == InboxCounters(waiting: node.inboxes.workers.limit, dropped: 3))
        await node.stop()
    }
}

@Suite struct `A stage whose effects nobody carries out` {
    private let store = SlowStore()
    private let hasRoom = Shared(true)
    private let host: StreamHost

    init() async throws {
        let clock = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000))
        host = StreamHost(
            try #require(StreamID("show")),
            StreamHost.Environment(
                store: store, log: .silent, directory: StreamDirectory(), now: { clock }, runsTimer: false,
                hasRoom: { [hasRoom] in hasRoom.value }, perform: { _, _ in }))
        _ = try await host.create(host: HostRig.ann.id, name: "Ann", edit: StageEdit())
    }

    @Test func `refuses commands, and changes nothing`() async throws {
        hasRoom.change { $0 = false }
        await #expect(throws: StageRefusal.overloaded) {
            _ = try await host.perform(.goLive, from: HostRig.ann)
        }
        #expect(await host.committed?.phase == .backstage)
        hasRoom.change { $0 = true }
        _ = try await host.perform(.goLive, from: HostRig.ann)
        #expect(await host.committed?.phase == .live)
    }

    @Test func `gathers only so many of them while a commit is under way`() async throws {
        store.hold()
        try await host.submit(.goLive, from: HostRig.ann)
        var taken = 0
        do throws(StageRefusal) {
            while taken < 10_000 {
                try await host.submit(.requestMute(HostRig.ann.id, .audio), from: HostRig.ann)
                taken += 1
            }
        } catch {
            #expect(error == .overloaded)
        }
        #expect(taken <= 4_096)
        store.release()
    }
}
