import Base
import Peer
import TestSupport
import Testing
import Transcoder
import Wire

@testable import Forwarding
@testable import Node

/// Carries out what a desk wants as a node with workers and a transcoder would, and knows what is open then.
private struct CompositionRig {
    var desk: CompositionDesk
    var situations: [StreamID: CompositionDesk.Situation] = [:]
    var now = MonotonicTime.zero
    /// Whether workers and the transcoder take anything.
    var areWorkersFull = false
    var isTranscoderFull = false
    /// What is open, by what gave it its name.
    private(set) var injections: Set<InjectionID> = []
    private(set) var jobs: [JobID: StreamID] = [:]
    private(set) var feeds: [TapID: (job: JobID, feed: ComposedProgramme.Feed)] = [:]
    /// What viewers have of each stream's composition.
    private(set) var given: [StreamID: [PublishedTrack]] = [:]
    private(set) var scenes: [StreamID: CompositionScene] = [:]
    private(set) var refreshed: [TrackKey] = []
    private(set) var reports: [CompositionDesk.Report] = []
    private var last: UInt64 = 0

    init(limit: Int) {
        desk = CompositionDesk(limit: limit)
    }

    private mutating func next() -> UInt64 {
        last += 1
        return last
    }

    func situation(_ stream: StreamID) -> CompositionDesk.Situation {
        situations[stream] ?? CompositionDesk.Situation()
    }

    mutating func compose(_ speakers: [ComposedSpeaker], _ stream: StreamID) {
        perform(desk.compose(speakers, in: stream, situation(stream), at: now))
    }

    /// The worker says that the tracks are there.
    mutating func make(_ tracks: [PublishedTrack], _ stream: StreamID) {
        perform(desk.made(tracks, of: stream))
    }

    mutating func receive(_ event: CompositionEvent, _ stream: StreamID) {
        if case .lost(let job) = event { jobs[job] = nil }
        perform(desk.receive(event, of: stream, situation(stream)))
    }

    mutating func advance(by time: Duration) {
        now = now + time
        let situations = situations
        perform(desk.advance(to: now) { situations[$0] ?? CompositionDesk.Situation() })
    }

    func job(of stream: StreamID) -> JobID? { jobs.first { $0.value == stream }?.key }

    mutating func perform(_ effects: [CompositionDesk.Effect]) {
        for effect in effects { perform(effect) }
    }

    private mutating func perform(_ effect: CompositionDesk.Effect) {
        switch effect {
        case .open(let stream):
            let id = areWorkersFull ? nil : InjectionID(number: next())
            if let id { injections.insert(id) }
            perform(desk.opened(id, of: stream, situation(stream)))
        case .close(let id): #expect(injections.remove(id) != nil)
        case .begin(let stream, let injection, _):
            guard !isTranscoderFull, injections.contains(injection) else { return }
            let job = JobID(number: next())
            jobs[job] = stream
            perform(desk.began(job, of: stream))
        case .end(let job): #expect(jobs.removeValue(forKey: job) != nil)
        case .feed(let stream, let job, let want):
            guard jobs[job] != nil else { return }
            let feed = ComposedProgramme.Feed(
                input: InputID(number: next()), tap: TapID(number: next()), track: want.track,
                maximumHeight: want.maximumHeight)
            feeds[feed.tap] = (job, feed)
            perform(desk.fed(feed, to: job, of: stream))
        case .limit(let feed): feeds[feed.tap]?.feed.maximumHeight = feed.maximumHeight
        case .stop(let feed): #expect(feeds.removeValue(forKey: feed.tap) != nil)
        case .refresh(let feed): refreshed.append(feed.track.key)
        case .makeKeyFrame(let job): #expect(jobs[job] != nil)
        case .show(let stream):
            if let scene = desk.scene(of: stream, name: { $0.participant.description }) {
                #expect(jobs[scene.job] == stream)
                scenes[stream] = scene.scene
            }
        case .give(let stream, let tracks): given[stream] = tracks
        case .report(_, let report): reports.append(report)
        }
    }
}

@Suite struct `A desk of compositions` {
    private let show: StreamID
    private let other: StreamID
    private let picture: PublishedTrack
    private let people: [ComposedSpeaker]
    private var rig = CompositionRig(limit: 1)

    init() throws {
        var random = SeededGenerator(seed: 1)
        show = try #require(StreamID("show"))
        other = try #require(StreamID("other"))
        picture = Self.track(900, .video)
        people = try (0..<4).map { try Self.speaker($0, using: &random) }
    }

    private static func track(_ number: Int, _ kind: MediaKind) -> PublishedTrack {
        let codec: MediaCodec = kind == .audio ? .opus : .vp8
        return PublishedTrack(
            key: TrackKey(worker: number % 2, track: TrackID(number: UInt64(number))),
            plan: SourcePlan(
                mid: kind == .audio ? "0" : "1", kind: kind,
                formats: [MediaFormat(codec: codec, payloadType: 96)]),
            extensions: ExtensionIDs())
    }

    private static func speaker(
        _ number: Int, using random: inout SeededGenerator
    ) throws -> ComposedSpeaker {
        ComposedSpeaker(
            id: .init(session: SessionID(using: &random), screen: nil),
            participant: try #require(ParticipantID("p\(number)")), video: track(10 + number, .video),
            audio: track(20 + number, .audio), hasPicture: true, isSpeaking: false, arrival: number)
    }

    private func pair() -> [ComposedSpeaker] { Array(people.prefix(2)) }

    /// The composition that viewers have of `show`, and its job.
    private mutating func play() throws -> JobID {
        rig.compose(pair(), show)
        rig.make([picture], show)
        let job = try #require(rig.job(of: show))
        rig.receive(.playable(job), show)
        #expect(rig.given[show] == [picture])
        return job
    }

    @Test mutating func `all people in view feed a composition, and viewers get it once it plays`() throws {
        rig.compose(pair(), show)
        let job = try #require(rig.job(of: show))
        let fed = Set(rig.feeds.values.map(\.feed.track.key.track.number))
        #expect(fed == [10, 11, 20, 21])
        // Two beside each other, in a picture of 720 lines.
        #expect(Set(rig.feeds.values.compactMap(\.feed.maximumHeight)) == [720])
        #expect(rig.scenes[show]?.speakers.map(\.name) == ["p0", "p1"])
        #expect(rig.scenes[show]?.speakers.allSatisfy { $0.hasPicture && $0.audio != nil } == true)
        rig.make([picture], show)
        #expect(rig.given[show] == [])
        rig.receive(.playable(job), show)
        #expect(rig.given[show] == [picture])
        #expect(rig.reports == [.begun(speakers: 2)])
    }

    @Test mutating func `the sources of a composition change with who is on stage`() throws {
        _ = try play()
        let before = rig.feeds.keys
        rig.compose([people[0], people[2], people[3]], show)
        let fed = Set(rig.feeds.values.map(\.feed.track.key.track.number))
        #expect(fed == [10, 20, 12, 22, 13, 23])
        // The people who stay go on, with a smaller layer.
        #expect(rig.feeds.keys.filter { before.contains($0) }.count == 2)
        #expect(Set(rig.feeds.values.compactMap(\.feed.maximumHeight)) == [360])
        var settings = CompositionSettings()
        settings.height = 360
        rig.perform(rig.desk.update(settings, of: show))
        #expect(Set(rig.feeds.values.compactMap(\.feed.maximumHeight)) == [180])
        #expect(rig.scenes[show]?.settings == settings)
    }

    @Test mutating func `is kept for five seconds, because people come back`() throws {
        let job = try play()
        rig.compose([], show)
        rig.advance(by: .milliseconds(4_999))
        #expect(rig.job(of: show) == job)
        rig.compose(pair(), show)
        rig.advance(by: .seconds(5))
        #expect(rig.job(of: show) == job)
        rig.compose([], show)
        rig.advance(by: .seconds(5))
        #expect(rig.jobs.isEmpty && rig.injections.isEmpty && rig.feeds.isEmpty)
        #expect(rig.reports.last == .ended)
    }

    @Test mutating func `rests ten seconds after the last viewer, until somebody comes`() throws {
        _ = try play()
        rig.situations[show] = CompositionDesk.Situation(isWatched: false)
        rig.advance(by: .milliseconds(100))
        rig.advance(by: .milliseconds(9_900))
        #expect(rig.job(of: show) != nil)
        // Somebody looked in: it begins anew to count.
        rig.situations[show] = CompositionDesk.Situation()
        rig.advance(by: .milliseconds(100))
        rig.situations[show] = CompositionDesk.Situation(isWatched: false)
        rig.advance(by: .milliseconds(100))
        rig.advance(by: .milliseconds(9_999))
        #expect(rig.job(of: show) != nil)
        rig.advance(by: .milliseconds(1))
        #expect(rig.jobs.isEmpty && rig.injections.isEmpty && rig.feeds.isEmpty)
        #expect(rig.given[show] == [])
        #expect(rig.desk.counters.resting == 1)
        rig.situations[show] = CompositionDesk.Situation()
        rig.advance(by: .milliseconds(100))
        #expect(rig.job(of: show) != nil)
        #expect(rig.desk.counters.resting == 0)
    }

    @Test mutating func `is not begun where nobody watches, or backstage`() {
        rig.situations[show] = CompositionDesk.Situation(isWatched: false)
        rig.compose(pair(), show)
        #expect(rig.injections.isEmpty && rig.desk.counters.resting == 1)
        rig.situations[show] = CompositionDesk.Situation(isLive: false)
        rig.advance(by: .milliseconds(100))
        #expect(rig.injections.count == 1 && rig.jobs.isEmpty)
        rig.situations[show] = nil
        rig.advance(by: .milliseconds(100))
        #expect(rig.job(of: show) != nil)
    }

    @Test mutating func `a new composition takes the room of an idle one`() throws {
        _ = try play()
        rig.compose(pair(), other)
        rig.compose(pair(), other)
        #expect(rig.reports == [.begun(speakers: 2), .refused])
        #expect(rig.desk.counters.waiting == 1)
        rig.advance(by: .milliseconds(100))
        #expect(rig.job(of: other) == nil)
        rig.compose([], show)
        rig.advance(by: .milliseconds(100))
        #expect(rig.job(of: show) == nil && rig.job(of: other) != nil)
        #expect(rig.injections.count == 1 && rig.desk.counters.waiting == 0)
    }

    @Test mutating func `all compositions for which there is room begin at once`() throws {
        rig = CompositionRig(limit: 2)
        let streams = try (1...5).map { try #require(StreamID("s\($0)")) }
        for stream in streams { rig.compose(pair(), stream) }
        #expect(rig.jobs.count == 2 && rig.desk.counters.waiting == 3)
        for stream in streams.prefix(2) {
            rig.situations[stream] = CompositionDesk.Situation(hasStage: false)
        }
        rig.advance(by: .milliseconds(100))
        #expect(rig.job(of: streams[2]) != nil && rig.job(of: streams[3]) != nil)
        #expect(rig.jobs.count == 2 && rig.desk.counters.waiting == 1)
    }

    @Test mutating func `begins anew when the transcoder is lost, and gives nothing until then`() throws {
        let job = try play()
        rig.isTranscoderFull = true
        rig.receive(.lost(job), show)
        #expect(rig.given[show] == [])
        #expect(rig.feeds.isEmpty && rig.jobs.isEmpty && rig.injections.count == 1)
        #expect(rig.desk.counters.lost == 1)
        rig.advance(by: .milliseconds(100))
        #expect(rig.jobs.isEmpty)
        rig.isTranscoderFull = false
        rig.advance(by: .milliseconds(100))
        let next = try #require(rig.job(of: show))
        #expect(rig.feeds.count == 4)
        // The last report of the old job is ignored.
        rig.receive(.playable(job), show)
        rig.receive(.lost(job), show)
        #expect(rig.given[show] == [] && rig.job(of: show) == next && rig.desk.counters.lost == 1)
        rig.receive(.playable(next), show)
        #expect(rig.given[show] == [picture])
    }

    @Test mutating func `ends with its stage`() throws {
        _ = try play()
        rig.situations[show] = CompositionDesk.Situation(hasStage: false)
        rig.advance(by: .milliseconds(100))
        #expect(rig.jobs.isEmpty && rig.injections.isEmpty && rig.feeds.isEmpty)
        rig.situations[other] = CompositionDesk.Situation(isWatched: false)
        rig.compose(pair(), other)
        rig.situations[other] = CompositionDesk.Situation(hasStage: false)
        rig.advance(by: .milliseconds(100))
        #expect(rig.desk.counters.resting == 0)
    }

    @Test mutating func `asks publishers for key frames, and reports a change of quality once`() throws {
        let job = try play()
        let input = try #require(rig.feeds.values.first { $0.feed.track.key.track.number == 10 }?.feed.input)
        rig.receive(.keyFrameWanted(job, input), show)
        rig.perform(rig.desk.refresh(Self.track(11, .video), in: show))
        rig.perform(rig.desk.refresh(Self.track(12, .video), in: show))
        #expect(rig.refreshed.map(\.track.number) == [10, 11])
        var status = CompositionStatus()
        status.level = 2
        for _ in 0..<3 { rig.receive(.status(job, status), show) }
        #expect(rig.reports == [.begun(speakers: 2), .level(status)])
        #expect(rig.desk.counters.statuses == [status])
    }

    @Test mutating func `a composition that comes too late is given back`() {
        let (injection, job) = (InjectionID(number: 7), JobID(number: 8))
        let opened = rig.desk.opened(injection, of: show, CompositionDesk.Situation())
        #expect(opened == [.close(injection)])
        let began = rig.desk.began(job, of: show)
        #expect(began == [.end(job)])
        let feed = ComposedProgramme.Feed(
            input: InputID(number: 9), tap: TapID(number: 10), track: picture, maximumHeight: nil)
        let fed = rig.desk.fed(feed, to: job, of: show)
        #expect(fed == [.stop(feed)])
    }

    /// Nobody on stage has to do anything for it.
    @Test mutating func `a composition is opened a second later if the worker is full`() {
        rig.areWorkersFull = true
        rig.compose(pair(), show)
        #expect(rig.injections.isEmpty && rig.desk.counters.waiting == 1)
        rig.advance(by: .seconds(1))
        #expect(rig.injections.isEmpty && rig.desk.counters.waiting == 1)
        rig.areWorkersFull = false
        rig.advance(by: .seconds(1))
        #expect(rig.injections.count == 1 && rig.desk.counters.waiting == 0)
        #expect(rig.job(of: show) != nil)
    }

    /// Whatever happens in whatever order: there are never more than may be, each job is fed exactly its speakers,
    /// nobody is given what does not play, and in the end nothing stays open.
    @Test(arguments: ChosenSeed.or(1...200))
    mutating func `leaves nothing open, whatever happens`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        rig = CompositionRig(limit: 2)
        let streams = try (0..<4).map { try #require(StreamID("s\($0)")) }
        var speakers: [StreamID: [ComposedSpeaker]] = [:]
        for _ in 0..<200 {
            let stream = streams[Int.random(in: 0..<4, using: &random)]
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3:
                let count = Int.random(in: 0...4, using: &random)
                speakers[stream] = Array(people.shuffled(using: &random).prefix(count))
                rig.compose(speakers[stream] ?? [], stream)
            case 3:
                rig.situations[stream] = CompositionDesk.Situation(
                    isLive: Bool.random(using: &random), isWatched: Bool.random(using: &random))
            case 4: rig.make([picture], stream)
            case 5: if let job = rig.job(of: stream) { rig.receive(.playable(job), stream) }
            case 6:
                for job in rig.jobs.keys { rig.receive(.lost(job), rig.jobs[job] ?? stream) }
            case 7:
                rig.isTranscoderFull = Bool.random(using: &random)
                rig.areWorkersFull = Int.random(in: 0..<4, using: &random) == 0
            default: rig.advance(by: .milliseconds(Int.random(in: 1...6_000, using: &random)))
            }
            #expect(rig.injections.count <= 2)
            for (job, stream) in rig.jobs where !(speakers[stream] ?? []).isEmpty {
                let fed = rig.feeds.values.filter { $0.job == job }.map(\.feed.track.key.track.number)
                let seen = (speakers[stream] ?? []).flatMap { [$0.video, $0.audio] }
                #expect(fed.sorted() == seen.compactMap { $0?.key.track.number }.sorted())
            }
            for (stream, tracks) in rig.given where !tracks.isEmpty {
                #expect(rig.job(of: stream) != nil, "\(tracks.count) tracks of nothing")
            }
        }
        for stream in streams { rig.situations[stream] = CompositionDesk.Situation(hasStage: false) }
        rig.advance(by: .milliseconds(100))
        #expect(rig.injections.isEmpty && rig.jobs.isEmpty && rig.feeds.isEmpty)
        let counters = rig.desk.counters
        #expect(counters.statuses.isEmpty && counters.waiting == 0 && counters.resting == 0)
    }
}
