import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

@Suite(.simulated) struct Injections {
    private static let id = InjectionID(number: 7)

    /// Makes VP8 packets as the transcoder would, and hands them to the server frame by frame.
    private struct Maker {
        var video: SyntheticVideo
        var sequenceNumber: UInt16 = 65_530
        var ssrc: UInt32
        let source: Int

        /// - Parameter source: place among the injection's sources.
        init(ssrc: UInt32, seed: UInt64, source: Int = 0, bitrate: Int = 1_500_000) {
            var random = SeededGenerator(seed: seed)
            var settings = SyntheticVideo.Settings()
            settings.bitrate = bitrate
            video = SyntheticVideo(settings, using: &random)
            self.ssrc = ssrc
            self.source = source
        }

        mutating func frame(at now: MonotonicTime) throws -> InjectedPackets {
            var packets = InjectedPackets()
            for packet in video.nextFrame() {
                var bytes = [UInt8](repeating: 0, count: 12) + packet.payload
                var span = bytes.mutableSpan
                _ = try RTPHeaderWriter(
                    marker: packet.marker, payloadType: 96, sequenceNumber: sequenceNumber,
                    timestamp: packet.timestamp, ssrc: ssrc, into: &span)
                sequenceNumber &+= 1
                packets.append(bytes.span, source: source, captured: now)
            }
            return packets
        }
    }

    private static func plan(_ source: Int) -> SourcePlan {
        SourcePlan(mid: "v\(source)", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)])
    }

    /// A viewer on the last worker, and the injection's tracks on the first one.
    private func start(seed: UInt64, workers: Int, sources: Int = 1) throws -> (
        simulation: Simulation, viewer: SimulatedClient, tracks: [PublishedTrack]
    ) {
        let simulation = try Simulation(seed: seed, workers: workers)
        let (viewer, _) = try simulation.add(.viewer, worker: workers - 1)
        #expect(simulation.run(for: .seconds(2)) { viewer.isConnected })
        simulation.perform(
            .openInjection(InjectionOpening(id: Self.id, sources: (0..<sources).map(Self.plan))))
        var tracks: [PublishedTrack] = []
        for case .injected(Self.id, let opened) in simulation.events { tracks = opened }
        return (simulation, viewer, tracks)
    }

    private func send(_ maker: inout Maker, frames: Int, over simulation: Simulation) throws {
        for _ in 0..<frames {
            simulation.perform(.inject(Self.id, try maker.frame(at: simulation.now)))
            simulation.run(for: .milliseconds(33))
        }
    }

    private func choose(_ tracks: [PublishedTrack], workers: Int, in simulation: Simulation) {
        for worker in 0..<workers {
            simulation.perform(.setProgramme(Simulation.stream, tracks), worker: worker)
        }
    }

    @Test(arguments: [1, 2]) func `are watched like any publisher`(workers: Int) throws {
        let (simulation, viewer, tracks) = try start(seed: 31, workers: workers)
        #expect(tracks.count == 1)
        var maker = Maker(ssrc: 5, seed: 1)
        try send(&maker, frames: 3, over: simulation)
        choose(tracks, workers: workers, in: simulation)
        try send(&maker, frames: 10, over: simulation)
        // Another worker has no pictures of the past, and asks for a key frame.
        maker.video.requestKeyFrame()
        try send(&maker, frames: 30, over: simulation)
        #expect(viewer.decoder.framesDecoded >= 25)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    @Test func `follow a real publisher and give way to one without a gap`() throws {
        let (simulation, viewer, tracks) = try start(seed: 32, workers: 1)
        _ = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(3)) { viewer.decoder.framesDecoded > 5 })
        var maker = Maker(ssrc: 5, seed: 2)
        try send(&maker, frames: 3, over: simulation)
        choose(tracks, workers: 1, in: simulation)
        let before = viewer.decoder.framesDecoded
        try send(&maker, frames: 30, over: simulation)
        #expect(viewer.decoder.framesDecoded >= before + 28)
        choose([], workers: 1, in: simulation)
        let between = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(1))
        #expect(viewer.decoder.framesDecoded >= between + 25)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    @Test func `that start anew under another SSRC go on as one stream`() throws {
        let (simulation, viewer, tracks) = try start(seed: 33, workers: 1)
        choose(tracks, workers: 1, in: simulation)
        var first = Maker(ssrc: 5, seed: 3)
        try send(&first, frames: 20, over: simulation)
        var second = Maker(ssrc: 6, seed: 4)
        try send(&second, frames: 20, over: simulation)
        #expect(viewer.decoder.framesDecoded >= 38)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    /// The next source has no key frame yet, and the one that is shown meanwhile begins again with a later picture.
    @Test func `a viewer who left during a replay holds nobody up`() throws {
        let (simulation, viewer, tracks) = try start(seed: 37, workers: 1, sources: 2)
        // A packet a frame, so that the past may go on with a later key frame behind any of them.
        var first = Maker(ssrc: 5, seed: 7, bitrate: 250_000)
        var second = Maker(ssrc: 6, seed: 8, source: 1)
        _ = try second.frame(at: simulation.now)
        try send(&second, frames: 1, over: simulation)
        for _ in 0..<400 {
            simulation.perform(.inject(Self.id, try first.frame(at: simulation.now)))
            simulation.run(for: .milliseconds(1))
        }
        choose(Array(tracks.prefix(1)), workers: 1, in: simulation)
        simulation.run(for: .milliseconds(10))
        #expect((1..<300).contains(viewer.decoder.framesDecoded))
        choose(Array(tracks.suffix(1)), workers: 1, in: simulation)
        first.video.requestKeyFrame()
        try send(&first, frames: 1, over: simulation)
        let isWaiting = simulation.workers[0].sessions.values.contains { session in
            session.slots.contains { $0.plan.kind == .video && $0.awaited != nil }
        }
        try #require(isWaiting)
        simulation.close(viewer)
        #expect(simulation.run(for: .seconds(1)) { simulation.workers[0].sessions.isEmpty })
        second.video.requestKeyFrame()
        try send(&second, frames: 2, over: simulation)
        #expect(simulation.workers[0].statistics.slots == 0)
    }

    @Test func `ask whoever makes them for a key frame, not more often than need be`() throws {
        let (simulation, viewer, tracks) = try start(seed: 34, workers: 1)
        choose(tracks, workers: 1, in: simulation)
        var maker = Maker(ssrc: 5, seed: 5)
        // Nothing a decoder could begin with.
        _ = try maker.frame(at: simulation.now)
        try send(&maker, frames: 2, over: simulation)
        let isAsked: (WorkerEvent) -> Bool = { $0 == .keyFrameWanted(Self.id, source: 0, layer: 0) }
        for _ in 0..<5 { simulation.askForKeyFrame(viewer) }
        #expect(simulation.events.count(where: isAsked) <= 1)
        try send(&maker, frames: 30, over: simulation)
        #expect(simulation.events.contains(where: isAsked))
        #expect(simulation.events.count(where: isAsked) <= 5)
    }

    /// What came before a leap is forgotten, on every worker that has a copy.
    @Test(arguments: [1, 2])
    func `an injection whose numbers leap is asked for a key frame`(workers: Int) throws {
        let (simulation, viewer, tracks) = try start(seed: 38, workers: workers)
        var maker = Maker(ssrc: 5, seed: 9)
        try send(&maker, frames: 3, over: simulation)
        choose(tracks, workers: workers, in: simulation)
        try send(&maker, frames: 10, over: simulation)
        maker.video.requestKeyFrame()
        try send(&maker, frames: 60, over: simulation)
        let before = viewer.decoder.framesDecoded
        #expect(before > 10)
        let isAsked: (WorkerEvent) -> Bool = { $0 == .keyFrameWanted(Self.id, source: 0, layer: 0) }
        let asked = simulation.events.count(where: isAsked)
        maker.sequenceNumber &+= 20_000
        // Sooner than the viewer itself asks, who gets nothing any more.
        try send(&maker, frames: 20, over: simulation)
        #expect(simulation.events.count(where: isAsked) == asked + 1)
        try send(&maker, frames: 40, over: simulation)
        #expect(viewer.decoder.framesDecoded == before)
        maker.video.requestKeyFrame()
        try send(&maker, frames: 30, over: simulation)
        #expect(viewer.decoder.framesDecoded >= before + 28)
    }

    @Test func `an injection refuses invalid packets and packets of unknown tracks`() throws {
        let (simulation, _, _) = try start(seed: 35, workers: 1)
        var packets = InjectedPackets()
        packets.append([1, 2, 3].span, source: 0)
        packets.append([UInt8](repeating: 0x80, count: 20).span, source: 9)
        packets.append([UInt8](repeating: 0x80, count: 20).span, source: 0, layer: 3)
        simulation.perform(.inject(Self.id, packets))
        #expect(simulation.workers[0].statistics.packetsInjected == 0)
        #expect(simulation.workers[0].statistics.media.drops.undecodable == 3)
        simulation.perform(.closeInjection(Self.id))
        simulation.perform(.inject(Self.id, packets))
        #expect(simulation.workers[0].statistics.media.drops.undecodable == 3)
    }
}
