import Base
import Peer
import TestSupport
import Testing
import Transcoder
import Wire

@testable import Forwarding
@testable import Node

/// Carries out what a desk wants as a node with workers and a transcoder would, and knows what is open then.
private struct RenditionRig {
    struct Job {
        let key: TrackKey
        let run: RenditionDesk.Run
    }

    var desk: RenditionDesk
    var now = MonotonicTime.zero
    var areWorkersFull = false
    var isTranscoderFull = false
    /// What the process died of too often is not taken.
    var refusesTracks = false
    private(set) var injections: Set<InjectionID> = []
    private(set) var jobs: [JobID: Job] = [:]
    private(set) var feeds: Set<TapID> = []
    private(set) var reports: [RenditionDesk.Report] = []
    private(set) var keyFrames: [Int] = []
    private(set) var refreshed = 0
    private var last: UInt64 = 0

    init(limit: Int) { desk = RenditionDesk(limit: limit) }

    private mutating func next() -> UInt64 {
        last += 1
        return last
    }

    static func track(_ number: UInt64) -> PublishedTrack {
        PublishedTrack(
            key: TrackKey(worker: 1, track: TrackID(number: number)),
            plan: SourcePlan(
                mid: "1", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 102)]),
            extensions: ExtensionIDs())
    }

    static let session = {
        var random = SeededGenerator(seed: 1)
        return SessionID(using: &random)
    }()

    mutating func want(_ number: UInt64, _ isWanted: Bool = true) {
        perform(desk.want(Self.track(number), of: Self.session, isWanted: isWanted))
    }

    mutating func advance(by time: Duration) {
        now = now + time
        perform(desk.advance(to: now))
    }

    /// The job of a track says something.
    mutating func say(_ event: RenditionDesk.Event, of number: UInt64) {
        guard let (id, job) = jobs.first(where: { $0.value.key.track.number == number }) else { return }
        if event == .lost { jobs[id] = nil }
        perform(desk.receive(event, of: job.run, of: job.key, at: now))
    }

    mutating func awaitKeyFrame(_ number: UInt64, layer: Int) {
        perform(desk.keyFrameWanted(of: Self.track(number).key, layer: layer))
    }

    var made: [UInt64] { jobs.values.map(\.key.track.number).sorted() }

    private mutating func perform(_ effects: [RenditionDesk.Effect]) {
        for effect in effects { perform(effect) }
    }

    private mutating func perform(_ effect: RenditionDesk.Effect) {
        switch effect {
        case .open(let key):
            let id = areWorkersFull ? nil : InjectionID(number: next())
            if let id { injections.insert(id) }
            perform(desk.opened(id, of: key, at: now))
        case .close(let id): #expect(injections.remove(id) != nil)
        case .begin(let key, let run, _):
            guard !isTranscoderFull else { return perform(desk.receive(.lost, of: run, of: key, at: now)) }
            let id = JobID(number: next())
            jobs[id] = Job(key: key, run: run)
            perform(desk.began(id, run, of: key))
        case .end(let job): #expect(jobs.removeValue(forKey: job) != nil)
        case .feed(let want, let job):
            let key = want.track.key
            guard !refusesTracks else { return perform(desk.refused(by: job, of: key, at: now)) }
            let feed = ComposedProgramme.Feed(
                input: InputID(number: 5), tap: TapID(number: next()), track: want.track, maximumHeight: nil)
            feeds.insert(feed.tap)
            perform(desk.fed(feed, to: job, of: key))
        case .stop(let feed): #expect(feeds.remove(feed.tap) != nil)
        case .refresh: refreshed += 1
        case .makeKeyFrame(let job, let layer):
            #expect(jobs[job] != nil)
            keyFrames.append(layer)
        case .report(let report, _): reports.append(report)
        }
    }

    var isClear: Bool { injections.isEmpty && jobs.isEmpty && feeds.isEmpty }
}

@Suite struct `A rendition desk` {
    @Test func `a rendition is made as long as it is wanted`() {
        var rig = RenditionRig(limit: 2)
        rig.want(1)
        rig.want(1)
        #expect(rig.made == [1] && rig.feeds.count == 1 && rig.injections.count == 1)
        rig.want(1, false)
        #expect(rig.isClear && rig.reports == [.begun, .ended])
        rig.want(1, false)
        #expect(rig.isClear)
    }

    @Test func `lets those wait that are too many, the earliest first`() {
        var rig = RenditionRig(limit: 1)
        for number in 1...3 as ClosedRange<UInt64> { rig.want(number) }
        #expect(rig.made == [1] && rig.desk.counters.waiting == 2)
        #expect(rig.reports == [.begun, .refused, .refused])
        rig.want(1, false)
        #expect(rig.made == [2] && rig.desk.counters.waiting == 1)
        rig.want(3, false)
        rig.want(2, false)
        #expect(rig.isClear && rig.desk.counters.waiting == 0)
    }

    @Test func `makes none where that is not allowed`() {
        var rig = RenditionRig(limit: 0)
        rig.want(1)
        rig.advance(by: .seconds(5))
        #expect(rig.isClear && rig.desk.counters.waiting == 1)
    }

    @Test func `begins again what was lost, ever later where it does not last`() {
        var rig = RenditionRig(limit: 1)
        rig.want(1)
        rig.say(.lost, of: 1)
        #expect(rig.isClear && rig.desk.counters.lost == 1)
        rig.advance(by: .milliseconds(400))
        #expect(rig.isClear)
        rig.advance(by: .milliseconds(100))
        #expect(rig.made == [1])
        rig.say(.lost, of: 1)
        rig.advance(by: .milliseconds(900))
        #expect(rig.isClear)
        rig.advance(by: .milliseconds(100))
        #expect(rig.made == [1])
        rig.advance(by: .seconds(20))
        rig.say(.lost, of: 1)
        rig.advance(by: .milliseconds(500))
        #expect(rig.made == [1])
        rig.want(1, false)
        #expect(rig.isClear)
    }

    @Test func `a lost rendition keeps its place`() {
        var rig = RenditionRig(limit: 1)
        rig.want(1)
        rig.want(2)
        rig.say(.lost, of: 1)
        rig.advance(by: .milliseconds(100))
        #expect(rig.made.isEmpty)
        rig.advance(by: .milliseconds(400))
        #expect(rig.made == [1])
    }

    @Test func `a rendition that worker or transcoder refuse is tried again later`() {
        var rig = RenditionRig(limit: 1)
        rig.areWorkersFull = true
        rig.want(1)
        #expect(rig.isClear)
        rig.areWorkersFull = false
        rig.isTranscoderFull = true
        rig.advance(by: .milliseconds(500))
        #expect(rig.isClear)
        rig.isTranscoderFull = false
        rig.refusesTracks = true
        rig.advance(by: .seconds(1))
        #expect(rig.isClear)
        rig.refusesTracks = false
        rig.advance(by: .seconds(2))
        #expect(rig.made == [1])
    }

    @Test func `a request for a key frame is passed on`() {
        var rig = RenditionRig(limit: 1)
        rig.awaitKeyFrame(1, layer: 1)
        rig.want(1)
        rig.awaitKeyFrame(1, layer: 0)
        rig.say(.keyFrameWanted(InputID(number: 5)), of: 1)
        rig.say(.keyFrameWanted(InputID(number: 6)), of: 1)
        #expect(rig.keyFrames == [0] && rig.refreshed == 1)
    }

    @Test func `the state of each rendition is reported`() {
        var rig = RenditionRig(limit: 1)
        rig.want(1)
        var status = RenditionStatus()
        status.load = 0.25
        rig.say(.status(status), of: 1)
        #expect(rig.desk.counters.statuses == [status])
    }
}
