import Base
import Peer
import TestSupport
import Testing
import Transcoder
import Wire

@testable import Forwarding
@testable import Node

/// Carries out what a desk wants as a node with workers and a transcoder would, and knows what is open then.
private struct PauseRig {
    /// One job that goes on.
    struct Job {
        let stream: StreamID
        let run: PauseDesk.Run
        let picture: PauseDesk.Picture
    }

    var desk = PauseDesk()
    var now = MonotonicTime.zero
    /// Whose camera is off, and the last preview of each stream.
    var wanted: Set<StreamID> = []
    var lastFrames: [StreamID: [UInt8]] = [:]
    /// Whether workers and the transcoder take anything.
    var areWorkersFull = false
    var isTranscoderFull = false
    private(set) var injections: Set<InjectionID> = []
    private(set) var jobs: [JobID: Job] = [:]
    private(set) var forgotten: [StreamID] = []
    /// What viewers get, as of the last time at which that changed.
    private(set) var shown: [StreamID: PublishedTrack] = [:]
    private var last: UInt64 = 0

    private mutating func next() -> UInt64 {
        last += 1
        return last
    }

    /// The programme may have changed.
    mutating func follow(_ stream: StreamID) {
        perform(
            desk.update(
                stream, isWanted: wanted.contains(stream), lastFrame: lastFrames[stream], at: now))
    }

    mutating func advance(by time: Duration) {
        now = now + time
        for stream in desk.due(at: now) { follow(stream) }
    }

    mutating func receive(_ event: PauseEvent, _ stream: StreamID) {
        if case .lost(let run) = event { jobs = jobs.filter { $0.value.run != run } }
        perform(desk.receive(event, of: stream, at: now))
    }

    func job(of stream: StreamID) -> Job? { jobs.values.first { $0.stream == stream } }

    mutating func perform(_ effects: [PauseDesk.Effect]) {
        for effect in effects { perform(effect) }
    }

    private mutating func perform(_ effect: PauseDesk.Effect) {
        switch effect {
        case .open(let stream):
            let id = areWorkersFull ? nil : InjectionID(number: next())
            if let id { injections.insert(id) }
            perform(desk.opened(id, of: stream, at: now))
        case .close(let id): #expect(injections.remove(id) != nil)
        case .begin(let stream, let run, let injection, let picture):
            #expect(injections.contains(injection))
            guard !isTranscoderFull else { return }
            let job = JobID(number: next())
            jobs[job] = Job(stream: stream, run: run, picture: picture)
            perform(desk.began(job, run, of: stream))
        case .end(let job): #expect(jobs.removeValue(forKey: job) != nil)
        case .makeKeyFrame(let job): #expect(jobs[job] != nil)
        case .give(let stream): shown[stream] = desk.track(of: stream)
        case .forgetFile(let stream): forgotten.append(stream)
        case .reportEnd: break
        }
    }
}

@Suite struct `A desk of pause pictures` {
    private let show: StreamID
    private let track: PublishedTrack
    private var rig = PauseRig()

    init() throws {
        show = try #require(StreamID("show"))
        track = PublishedTrack(
            key: TrackKey(worker: 0, track: TrackID(number: 9)), plan: PauseDesk.plan,
            extensions: ExtensionIDs())
    }

    /// The camera goes off, and viewers see the last preview in its place.
    private mutating func pause() throws -> PauseDesk.Run {
        rig.lastFrames[show] = [1, 2, 3]
        rig.wanted = [show]
        rig.follow(show)
        rig.advance(by: PauseDesk.delay)
        rig.perform(rig.desk.made(track, of: show))
        let run = try #require(rig.job(of: show)?.run)
        rig.receive(.playable(run), show)
        #expect(rig.shown[show] == track)
        return run
    }

    @Test mutating func `shows the last preview half a second after the camera went off`() {
        rig.lastFrames[show] = [1, 2, 3]
        rig.wanted = [show]
        rig.follow(show)
        #expect(rig.desk.deadline == rig.now + .milliseconds(500))
        rig.advance(by: .milliseconds(499))
        rig.follow(show)
        #expect(rig.injections.isEmpty)
        rig.advance(by: .milliseconds(1))
        #expect(rig.job(of: show)?.picture == PauseDesk.Picture(file: [1, 2, 3], isLastFrame: true))
        #expect(rig.desk.deadline == nil)
        // Nothing is shown that is not there.
        rig.perform(rig.desk.made(track, of: show))
        #expect(rig.shown[show] == nil && rig.desk.playableCount == 0)
        if let run = rig.job(of: show)?.run { rig.receive(.playable(run), show) }
        #expect(rig.shown[show] == track && rig.desk.playableCount == 1)
    }

    @Test mutating func `shows nothing to those whose camera is back at once`() {
        rig.lastFrames[show] = [1]
        rig.wanted = [show]
        rig.follow(show)
        rig.now = rig.now + .milliseconds(200)
        rig.wanted = []
        rig.follow(show)
        rig.wanted = [show]
        rig.advance(by: .milliseconds(200))
        rig.follow(show)
        rig.advance(by: .milliseconds(499))
        #expect(rig.injections.isEmpty)
        rig.advance(by: .milliseconds(1))
        #expect(rig.job(of: show) != nil)
    }

    @Test mutating func `ends with the camera, the stream or its source`() throws {
        _ = try pause()
        rig.wanted = []
        rig.follow(show)
        #expect(rig.shown[show] == nil && rig.jobs.isEmpty && rig.injections.isEmpty)
        #expect(rig.desk.deadline == nil && rig.desk.playableCount == 0)
    }

    @Test mutating func `waits for a picture, and looks again every second`() {
        rig.wanted = [show]
        rig.follow(show)
        rig.advance(by: .milliseconds(500))
        #expect(rig.injections.isEmpty && rig.desk.deadline == rig.now + .seconds(1))
        rig.lastFrames[show] = [4]
        rig.advance(by: .milliseconds(999))
        #expect(rig.injections.isEmpty)
        rig.advance(by: .milliseconds(1))
        #expect(rig.job(of: show)?.picture.file == [4])
    }

    @Test mutating func `begins anew a second after the transcoder was lost`() throws {
        let run = try pause()
        rig.receive(.lost(run), show)
        #expect(rig.shown[show] == nil && rig.jobs.isEmpty && rig.injections.count == 1)
        rig.isTranscoderFull = true
        rig.advance(by: .seconds(1))
        rig.isTranscoderFull = false
        rig.advance(by: .milliseconds(999))
        #expect(rig.jobs.isEmpty)
        rig.lastFrames[show] = [5]
        rig.advance(by: .milliseconds(1))
        let next = try #require(rig.job(of: show))
        #expect(next.run != run && next.picture.file == [5])
        // The last report of the old job is ignored.
        rig.receive(.playable(run), show)
        rig.receive(.lost(run), show)
        #expect(rig.shown[show] == nil && rig.job(of: show)?.run == next.run)
        rig.receive(.playable(next.run), show)
        #expect(rig.shown[show] == track)
    }

    @Test mutating func `prefers what the host chose, and changes to it without a gap`() throws {
        let run = try pause()
        rig.desk.setFile([7, 7], of: show)
        rig.perform(rig.desk.renew(show, at: rig.now))
        #expect(rig.jobs.isEmpty && rig.desk.track(of: show) == track)
        rig.follow(show)
        #expect(rig.job(of: show)?.picture == PauseDesk.Picture(file: [7, 7], isLastFrame: false))
        rig.receive(.lost(run), show)
        #expect(rig.desk.track(of: show) == track)
    }

    @Test mutating func `has so much room for what hosts choose, and forgets it at the end`() throws {
        let other = try #require(StreamID("other"))
        let half = [UInt8](repeating: 1, count: PauseDesk.memory / 2)
        rig.desk.setFile(half, of: show)
        #expect(rig.desk.hasRoom(for: half, of: other))
        #expect(!rig.desk.hasRoom(for: half + [1], of: other))
        #expect(rig.desk.hasRoom(for: half + half, of: show))
        #expect(rig.desk.hasRoom(for: nil, of: other))
        for _ in 0..<2 { rig.perform(rig.desk.forgetFile(of: show)) }
        #expect(rig.forgotten == [show] && rig.desk.file(of: show) == nil)
    }

    @Test mutating func `gives back what comes too late`() {
        let (injection, job) = (InjectionID(number: 1), JobID(number: 2))
        let opened = rig.desk.opened(injection, of: show, at: rig.now)
        #expect(opened == [.close(injection)])
        let began = rig.desk.began(job, PauseDesk.Run(number: 3), of: show)
        #expect(began == [.end(job)])
        let wanted = rig.desk.keyFrameWanted(of: show)
        #expect(wanted.isEmpty)
    }

    /// Whatever happens in whatever order: viewers know what they get, a stream has one job at most, and nothing stays
    /// open for a camera that is on.
    @Test(arguments: ChosenSeed.or(1...200))
    mutating func `leaves nothing open, whatever happens`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let streams = try (0..<3).map { try #require(StreamID("s\($0)")) }
        for _ in 0..<200 {
            let stream = streams[Int.random(in: 0..<3, using: &random)]
            let run = rig.job(of: stream)?.run
            switch Int.random(in: 0..<9, using: &random) {
            case 0:
                if rig.wanted.remove(stream) == nil { rig.wanted.insert(stream) }
                rig.follow(stream)
            case 1: rig.lastFrames[stream] = Bool.random(using: &random) ? [1] : nil
            case 2:
                rig.desk.setFile(Bool.random(using: &random) ? [2] : nil, of: stream)
                rig.perform(rig.desk.renew(stream, at: rig.now))
            case 3: if let run { rig.receive(.playable(run), stream) }
            case 4: if let run { rig.receive(.lost(run), stream) }
            case 5: rig.perform(rig.desk.made(track, of: stream))
            case 6:
                rig.isTranscoderFull = Bool.random(using: &random)
                rig.areWorkersFull = Bool.random(using: &random)
            default: rig.advance(by: .milliseconds(Int.random(in: 1...1_500, using: &random)))
            }
            for stream in streams {
                #expect(rig.shown[stream] == rig.desk.track(of: stream))
                #expect(rig.jobs.values.count { $0.stream == stream } <= 1)
                #expect(rig.wanted.contains(stream) || rig.job(of: stream) == nil)
            }
            #expect(rig.injections.count <= rig.wanted.count)
        }
        rig.wanted = []
        for stream in streams { rig.follow(stream) }
        #expect(rig.injections.isEmpty && rig.jobs.isEmpty && rig.desk.deadline == nil)
    }
}
