import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Sessions of publishers who speak another protocol, from their opening to their end.
@Suite struct `A session on a worker` {
    private let rig: WorkerRig
    private let talk: StreamID
    private let ann: ParticipantID

    init() throws {
        rig = try WorkerRig()
        talk = try #require(StreamID("talk"))
        ann = try #require(ParticipantID("ann"))
    }

    private var worker: Worker { rig.workers[0] }

    /// A packet with a header, whatever its type is.
    private func packet(_ payloadType: UInt8, number: UInt16 = 500, _ payload: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = [0x80, payloadType]
        bytes.append(bigEndian: number)
        bytes.append(bigEndian: UInt32(9))
        bytes.append(bigEndian: UInt32(77))
        return bytes + payload
    }

    // MARK: Opening

    @Test func `is opened once under its name, and tells of its steps in their order`() throws {
        let id = rig.publish(talk)
        #expect(rig.events() == [.checked(id), .connected(id, nil, nil)])
        let session = try rig.session(id)
        rig.publish(StreamID("other"), id: id)
        #expect(worker.sessions[id] === session && session.publishes == talk)
        #expect(worker.counters.sessionsOpened == 1 && worker.counters.sessionsConnected == 1)
        #expect(worker.published.count == 2 && rig.events().isEmpty)
        rig.send("a", from: id)
        rig.send("a", from: id)
        rig.send("v", from: id, isKey: true)
        #expect(rig.events() == [.mediaStarted(id)])
    }

    @Test func `has tracks with names of their own, also after others have ended`() throws {
        var names: Set<TrackID> = []
        for _ in 0..<5 {
            let id = rig.publish(talk)
            for source in try rig.session(id).sources { names.insert(source.track.key.track) }
            rig.perform(.close(id))
        }
        #expect(names.count == 10 && worker.published.isEmpty)
    }

    @Test func `tells between two fences what happened between them`() {
        rig.perform(.fence(3))
        let id = rig.publish(talk)
        rig.perform(.fence(4))
        rig.perform(.close(id))
        rig.perform(.fence(4))
        #expect(
            rig.events() == [
                .passed(3), .checked(id), .connected(id, nil, nil), .passed(4), .closed(id, .ended),
                .passed(4),
            ])
        #expect(rig.events().isEmpty)
    }

    // MARK: Media

    @Test func `refuses what cannot be a packet of its m-lines, and goes on`() throws {
        let id = rig.publish(talk)
        let picture = Feed.picture(isKey: true)
        rig.send([], source: 0, from: id)
        rig.send([0x80, 111, 0], source: 0, from: id)
        rig.send(packet(111, [0x78, 1]), source: 2, from: id)
        rig.send(packet(111, [0x78, 1]), source: -1, from: id)
        // A type that was not agreed on, and one that was for the other m-line.
        rig.send(packet(50, picture), source: 1, from: id)
        rig.send(packet(111, picture), source: 1, from: id)
        let session = try rig.session(id)
        #expect(session.counters.drops.undecodable == 6 && session.counters.received.packets == 6)
        #expect(session.counters.audioReceived.packets == 0 && session.counters.videoReceived.packets == 0)
        let stored = session.sources.flatMap(\.track.layers).compactMap { $0.history.newest }
        #expect(stored.isEmpty)
        rig.send(packet(111, [0x78, 1]), source: 0, from: id)
        rig.send(packet(96, picture), source: 1, from: id)
        #expect(session.counters.audioReceived.packets == 1 && session.counters.videoReceived.packets == 1)
        #expect(session.counters.drops.undecodable == 6)
        // Nobody is there who could be sent this.
        rig.send(packet(96, picture), source: 1, from: rig.newID())
        #expect(worker.statistics.media.received.packets == 8)
    }

    @Test func `asks its encoder for a key frame four times a second at most`() throws {
        let id = rig.publish(talk)
        rig.send("v", from: id)
        let track = try rig.session(id).sources[1].track
        var asked: [Int64] = []
        let start = rig.now
        for milliseconds in [0, 1, 249, 250, 300, 499, 500, 900] as [Int64] {
            rig.now = start + .milliseconds(milliseconds)
            for _ in 0..<3 { track.keyFrameDemanded(of: 0, for: .loss, at: rig.now) }
            rig.endBatches()
            let wishes = rig.events().count { $0 == .sessionKeyFrameWanted(id) }
            for _ in 0..<wishes { asked.append(milliseconds) }
        }
        #expect(asked == [0, 250, 500, 900])
    }

    @Test func `asks for nothing while nobody watches, and again when somebody does`() throws {
        let id = rig.publish(talk)
        rig.send("v", from: id)
        rig.endBatches()
        #expect(!rig.events().contains(.sessionKeyFrameWanted(id)))
        let viewer = rig.view(talk)
        rig.endBatches()
        #expect(rig.events().contains(.sessionKeyFrameWanted(id)))
        rig.send("v", from: id, isKey: true)
        rig.perform(.close(viewer))
        _ = rig.view(talk)
        rig.endBatches()
        #expect(!rig.events().contains(.sessionKeyFrameWanted(id)), "what is cached does for that one")
    }

    // MARK: Stages

    @Test func `tells of a stage's sources and voices, and of nobody else's`() {
        let speaker = rig.publish(nil, stage: talk, participant: ann)
        let publisher = rig.publish(talk)
        _ = rig.events()
        rig.send("a", from: publisher)
        #expect(rig.events() == [.mediaStarted(publisher)])
        // It sends no level, so it counts as a quiet voice.
        rig.send("a", from: speaker)
        #expect(
            rig.events() == [
                .sourceChanged(speaker, mid: "a", isActive: true), .voice(speaker, level: 85),
                .mediaStarted(speaker),
            ])
        rig.send("v", from: speaker)
        #expect(rig.events() == [.sourceChanged(speaker, mid: "v", isActive: true)])
        rig.endBatches()
        rig.run(.milliseconds(299))
        #expect(rig.events().isEmpty)
        rig.run(.milliseconds(2))
        #expect(rig.events() == [.voice(speaker, level: 0)])
        rig.run(.seconds(2))
        #expect(
            rig.events() == [
                .sourceChanged(speaker, mid: "a", isActive: false),
                .sourceChanged(speaker, mid: "v", isActive: false),
            ])
        rig.send("a", from: speaker)
        #expect(
            rig.events() == [
                .sourceChanged(speaker, mid: "a", isActive: true), .voice(speaker, level: 85),
            ])
    }

    @Test func `leaves its stage when it ends, whoever else is there`() throws {
        let bob = try #require(ParticipantID("bob"))
        let first = rig.publish(nil, stage: talk, participant: ann)
        let second = rig.publish(nil, stage: talk, participant: bob)
        #expect(worker.stages == [talk: [first, second]])
        rig.perform(.close(first))
        #expect(worker.stages == [talk: [second]])
        rig.perform(.close(first))
        rig.perform(.close(second))
        #expect(worker.stages.isEmpty)
    }

    // MARK: Inquiries

    @Test func `is measured while it is there, and otherwise not at all`() throws {
        let id = rig.publish(talk)
        rig.send("v", from: id, isKey: true)
        rig.send("v", from: id)
        let answers = Watched<[String]>([])
        func measure(_ id: SessionID) {
            rig.perform(
                .measure(
                    id,
                    Inquiry { measurements in
                        let received = measurements?.sources.map { $0.layers.map { Int($0.received) } }
                        answers.change { $0.append(received.map { "\($0)" } ?? "nothing") }
                    }))
        }
        measure(id)
        measure(rig.newID())
        rig.perform(.close(id))
        measure(id)
        #expect(answers.value == ["[[], [2]]", "nothing", "nothing"])
    }

    @Test func `is measured by its tracks, and nothing else is`() throws {
        let id = rig.publish(talk)
        rig.send("v", from: id, isKey: true)
        let injection = InjectionID(number: 1)
        let plan = SourcePlan(
            mid: "x", kind: .audio, formats: [MediaFormat(codec: .opus, payloadType: 111)])
        rig.perform(.openInjection(InjectionOpening(id: injection, sources: [plan])))
        let own = try rig.track("v", of: id).key.track
        let made = try #require(worker.injections[injection]?.tracks.first).key.track
        let answers = Watched<[String]>([])
        for track in [own, made, TrackID(number: 999)] {
            rig.perform(
                .measureTrack(
                    track,
                    Inquiry { measurements in
                        answers.change { $0.append(measurements?.mid ?? "nothing") }
                    }))
        }
        #expect(answers.value == ["v", "nothing", "nothing"])
    }

    @Test func `leaves its measurements and counts behind when it ends`() throws {
        let id = rig.publish(talk)
        let viewer = rig.view(talk)
        for number in 0..<3 { rig.send("v", from: id, isKey: number == 0) }
        rig.endBatches()
        let gauge = try rig.session(id).gauge
        #expect(gauge.measurements == nil)
        let before = worker.statistics
        #expect(before.sessions == 2 && before.slots == 2 && before.slotsAttached == 2)
        #expect(before.media.videoReceived.packets == 3 && worker.counters.media == MediaCounters())
        rig.perform(.close(id))
        let layers = gauge.measurements?.sources.map { $0.layers.map { Int($0.received) } }
        #expect(layers == [[], [3]])
        let after = worker.statistics
        #expect(after.sessions == 1 && after.slotsAttached == 0)
        #expect(after.media == before.media, "each is counted once")
        rig.perform(.close(viewer))
        #expect(worker.statistics.media == before.media && worker.statistics.slots == 0)
    }

    // MARK: Captures

    private func capture(_ id: SessionID, for time: Duration, _ outcomes: Watched<[String]>) {
        let opening = CaptureOpening(
            session: id, local: TransportAddress(ip: .loopback, port: 9), time: time)
        rig.perform(
            .capture(
                opening,
                Inquiry { outcome in
                    let text =
                        switch outcome {
                        case .captured(let file): file.isEmpty ? "an empty file" : "a file"
                        case .running: "running"
                        case nil: "nothing"
                        }
                    outcomes.change { $0.append(text) }
                }))
    }

    @Test func `is captured for so long, and no other meanwhile`() {
        let (id, other) = (rig.publish(talk), rig.publish(StreamID("other")))
        let outcomes = Watched<[String]>([])
        capture(rig.newID(), for: .seconds(9), outcomes)
        #expect(outcomes.value == ["nothing"] && worker.headerCapture == nil)
        capture(id, for: .seconds(5), outcomes)
        capture(other, for: .seconds(5), outcomes)
        capture(id, for: .seconds(1), outcomes)
        #expect(outcomes.value == ["nothing", "running", "running"] && worker.headerCapture != nil)
        rig.run(.milliseconds(4_999))
        #expect(outcomes.value.count == 3)
        rig.run(.milliseconds(1))
        #expect(outcomes.value == ["nothing", "running", "running", "a file"])
        #expect(worker.headerCapture == nil)
        capture(other, for: .seconds(1), outcomes)
        rig.run(.seconds(2))
        #expect(outcomes.value.suffix(2) == ["a file", "a file"])
    }

    @Test func `ends its capture with itself, and no other's`() {
        let (id, other) = (rig.publish(talk), rig.publish(StreamID("other")))
        let outcomes = Watched<[String]>([])
        capture(id, for: .seconds(60), outcomes)
        rig.perform(.close(other))
        #expect(outcomes.value.isEmpty)
        rig.perform(.close(id))
        #expect(outcomes.value == ["a file"] && worker.headerCapture == nil)
        rig.run(.seconds(61))
        #expect(outcomes.value.count == 1)
    }
}
