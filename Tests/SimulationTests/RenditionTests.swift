import Base
import ClientPeer
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Makes renditions when the server wants them, as control and the transcoder would.
private struct RenditionMaking {
    /// From the wish until the first picture.
    static let delay = Duration.milliseconds(300)
    private static let id = InjectionID(number: 3)
    private static let frame = Duration.nanoseconds(33_333_333)

    private var seen = 0
    private var track: PublishedTrack?
    private var next = MonotonicTime.distantFuture
    private var low: SyntheticVideo
    private var sequence: [UInt16] = [40_000, 50_000]
    private var stillNumber = 0
    private var random = SeededGenerator(seed: 99)
    /// Of what is made now.
    private var life: UInt32 = 0
    private var lost: PublishedTrack?
    private(set) var wishes: [Bool] = []

    init() {
        low = Self.lowPicture(using: &random)
    }

    private static func lowPicture(using random: inout SeededGenerator) -> SyntheticVideo {
        var settings = SyntheticVideo.Settings()
        (settings.bitrate, settings.width, settings.height) = (RenditionLayer.low.bitrate, 640, 360)
        (settings.temporalLayers, settings.keyFrameRatio) = (2, 5)
        return SyntheticVideo(settings, using: &random)
    }

    /// Lets time pass, while renditions are made.
    mutating func run(_ simulation: Simulation, for duration: Duration) throws {
        let end = simulation.now + duration
        while simulation.now < end {
            let step = min(max(next - simulation.now, .milliseconds(1)), end - simulation.now, Self.frame)
            simulation.run(for: step)
            take(simulation)
            guard track != nil, simulation.now >= next else { continue }
            next = next + Self.frame
            try make(simulation)
        }
    }

    private mutating func take(_ simulation: Simulation) {
        for event in simulation.events.dropFirst(seen) {
            switch event {
            case .renditionWanted(_, let wanted, let isWanted):
                wishes.append(isWanted)
                isWanted ? begin(wanted, simulation) : end(simulation)
            case .keyFrameWanted(Self.id, _, 1): low.requestKeyFrame()
            case .keyFrameWanted(Self.id, _, _): stillNumber = 0
            default: break
            }
        }
        seen = simulation.events.count
    }

    private mutating func begin(_ wanted: PublishedTrack, _ simulation: Simulation) {
        track = wanted
        next = simulation.now + Self.delay
        life += 1
        low = Self.lowPicture(using: &random)
        simulation.perform(
            .openInjection(InjectionOpening(id: Self.id, renditionsOf: wanted.key.track)),
            worker: wanted.key.worker)
    }

    private mutating func end(_ simulation: Simulation) {
        guard let key = track?.key else { return }
        track = nil
        simulation.perform(.closeInjection(Self.id), worker: key.worker)
    }

    /// The transcoder's process is gone.
    mutating func lose(_ simulation: Simulation) {
        lost = track
        end(simulation)
    }

    /// It is there again.
    mutating func beginAgain(_ simulation: Simulation) {
        if let lost { begin(lost, simulation) }
    }

    private mutating func make(_ simulation: Simulation) throws {
        var packets = InjectedPackets()
        for packet in low.nextFrame() { try append(packet, 1, to: &packets, at: simulation.now) }
        stillNumber += 1
        if stillNumber % 60 == 1 {
            var settings = SyntheticVideo.Settings()
            (settings.bitrate, settings.framesPerSecond, settings.keyFrameRatio) = (9_000 * 8, 1, 1)
            (settings.width, settings.height) = (480, 270)
            var still = SyntheticVideo(settings, using: &random)
            for packet in still.nextFrame() { try append(packet, 0, to: &packets, at: simulation.now) }
        }
        guard let key = track?.key else { return }
        simulation.perform(.inject(Self.id, packets), worker: key.worker)
    }

    private mutating func append(
        _ packet: SyntheticVideo.Packet, _ layer: Int, to packets: inout InjectedPackets,
        at now: MonotonicTime
    ) throws {
        var bytes = [UInt8](repeating: 0, count: 12) + packet.payload
        var span = bytes.mutableSpan
        _ = try RTPHeaderWriter(
            marker: packet.marker, payloadType: 96, sequenceNumber: sequence[layer],
            timestamp: UInt32(truncatingIfNeeded: now.nanoseconds / 1_000 * 9 / 100),
            ssrc: 70 + 2 * life + UInt32(layer), into: &span)
        sequence[layer] &+= 1
        packets.append(bytes.span, source: 0, layer: layer, captured: now)
    }
}

@Suite struct Renditions {
    /// A publisher of one size, and a viewer who has had it for a while.
    private func begin(
        seed: UInt64, workers: Int = 1, bitrate: Int = 2_000_000, hasTransportFeedback: Bool = true
    ) throws -> (simulation: Simulation, viewer: SimulatedClient, slot: Slot) {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero), workers: workers)
        let (publisher, _) = try simulation.add(.publisher, bitrate: bitrate)
        let (viewer, session) = try simulation.add(
            .viewer, worker: workers - 1, hasTransportFeedback: hasTransportFeedback)
        let hasBegun = simulation.run(for: .seconds(5)) {
            publisher.isConnected && viewer.decoder.framesDecoded > 0
        }
        #expect(hasBegun)
        simulation.run(for: .seconds(3))
        let slots = simulation.workers[workers - 1].sessions[session]?.slots ?? []
        return (simulation, viewer, try #require(slots.first { $0.plan.kind == .video }))
    }

    /// Pictures and packets of sound that a viewer got in some time.
    private func watch(
        _ viewer: SimulatedClient, _ making: inout RenditionMaking, in simulation: Simulation,
        for seconds: Int64
    ) throws -> (pictures: Int, sound: Double) {
        let before = (viewer.decoder.framesDecoded, viewer.audioPackets)
        try making.run(simulation, for: .seconds(seconds))
        let packets = viewer.audioPackets - before.1
        return (viewer.decoder.framesDecoded - before.0, Double(packets) / Double(50 * seconds))
    }

    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64], [1, 2])
    func `a viewer whose link is too slow for the publisher's picture gets a rendition`(
        seed: UInt64, workers: Int
    ) throws {
        let (simulation, viewer, slot) = try begin(seed: seed, workers: workers)
        var making = RenditionMaking()
        simulation.cap(viewer, CappedLink(bitrate: 300_000))
        try making.run(simulation, for: .milliseconds(2_500))
        let slow = try watch(viewer, &making, in: simulation, for: 20)
        #expect(slow.pictures >= 12 * 20, "\(slow)")
        #expect(slow.sound >= 0.99, "\(slow)")
        #expect(slot.current?.rendition == .low && making.wishes == [true])
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
    }

    /// It takes a report or two longer than where each packet is told of.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a viewer with reports alone gets a rendition`(seed: UInt64) throws {
        let (simulation, viewer, slot) = try begin(seed: seed, hasTransportFeedback: false)
        var making = RenditionMaking()
        simulation.cap(viewer, CappedLink(bitrate: 700_000))
        try making.run(simulation, for: .seconds(6))
        #expect(slot.current?.rendition == .low && making.wishes == [true])
        let slow = try watch(viewer, &making, in: simulation, for: 30)
        #expect(slow.pictures >= 18 * 30, "\(slow)")
        #expect(slow.sound >= 0.9, "\(slow)")
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
        simulation.cap(viewer, nil)
        try making.run(simulation, for: .seconds(130))
        #expect(slot.current?.rendition == nil && !slot.isStopped)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a rendition has all its pictures where the link carries them`(seed: UInt64) throws {
        let (simulation, viewer, _) = try begin(seed: seed)
        var making = RenditionMaking()
        simulation.cap(viewer, CappedLink(bitrate: 600_000))
        try making.run(simulation, for: .seconds(15))
        let slow = try watch(viewer, &making, in: simulation, for: 10)
        #expect(slow.pictures >= 25 * 10, "\(slow)")
        #expect(slow.sound >= 0.99, "\(slow)")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `are a picture every two seconds where there is room for little more than sound`(
        seed: UInt64
    ) throws {
        let (simulation, viewer, slot) = try begin(seed: seed)
        var making = RenditionMaking()
        simulation.cap(viewer, CappedLink(bitrate: 130_000))
        try making.run(simulation, for: .seconds(10))
        let slow = try watch(viewer, &making, in: simulation, for: 20)
        #expect((7...12).contains(slow.pictures), "\(slow)")
        #expect(slow.sound >= 0.98, "\(slow)")
        #expect(slot.current?.rendition == .stills)
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [1, 2])
    func `end ten seconds after the last viewer who needs them`(seed: UInt64, workers: Int) throws {
        let (simulation, viewer, slot) = try begin(seed: seed, workers: workers)
        var making = RenditionMaking()
        simulation.cap(viewer, CappedLink(bitrate: 300_000))
        try making.run(simulation, for: .seconds(10))
        simulation.cap(viewer, nil)
        let limit = simulation.now + .seconds(40)
        while slot.current?.rendition != nil, simulation.now < limit {
            try making.run(simulation, for: .milliseconds(100))
        }
        try making.run(simulation, for: .milliseconds(9_000))
        #expect(making.wishes == [true])
        try making.run(simulation, for: .milliseconds(1_800))
        #expect(making.wishes == [true, false])
        let whole = try watch(viewer, &making, in: simulation, for: 5)
        #expect(whole.pictures >= 140 && whole.sound >= 0.99, "\(whole)")
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
    }

    @Test(arguments: [1, 2])
    func `sound stays whole while a rendition is lost, and the rendition comes back`(workers: Int) throws {
        let (simulation, viewer, slot) = try begin(seed: 5, workers: workers)
        var making = RenditionMaking()
        simulation.cap(viewer, CappedLink(bitrate: 300_000))
        try making.run(simulation, for: .seconds(5))
        #expect(slot.current?.rendition == .low && !slot.isStopped)
        making.lose(simulation)
        try making.run(simulation, for: .milliseconds(1_500))
        #expect(slot.isStopped)
        let without = try watch(viewer, &making, in: simulation, for: 5)
        #expect(without.sound >= 0.98, "\(without)")
        making.beginAgain(simulation)
        try making.run(simulation, for: .seconds(3))
        let again = try watch(viewer, &making, in: simulation, for: 5)
        #expect(again.pictures >= 60 && again.sound >= 0.97, "\(again)")
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
    }

    @Test func `only a viewer who wants the lowest layer gets a rendition`() throws {
        let (simulation, viewer, slot) = try begin(seed: 11)
        var making = RenditionMaking()
        simulation.cap(viewer, CappedLink(bitrate: 10_000_000))
        simulation.perform(.prefer(slot.session.id, DeliveryPreferences(pin: .low)))
        try making.run(simulation, for: .seconds(5))
        #expect(slot.current?.rendition == .low && making.wishes == [true])
        let least = try watch(viewer, &making, in: simulation, for: 5)
        #expect(least.pictures >= 140 && least.sound >= 0.99, "\(least)")
        simulation.cap(viewer, CappedLink(bitrate: 300_000))
        simulation.perform(.prefer(slot.session.id, DeliveryPreferences(pin: .high)))
        try making.run(simulation, for: .seconds(14))
        #expect(slot.isStopped && slot.current?.rendition == nil && making.wishes == [true, false])
    }

    @Test func `end with the track`() throws {
        let simulation = try Simulation(seed: 7, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let (publisher, _) = try simulation.add(.publisher, bitrate: 2_000_000)
        let (viewer, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 0 })
        var making = RenditionMaking()
        simulation.cap(viewer, CappedLink(bitrate: 300_000))
        try making.run(simulation, for: .seconds(5))
        #expect(making.wishes == [true])
        simulation.close(publisher)
        try making.run(simulation, for: .seconds(1))
        #expect(making.wishes == [true, false])
    }

    @Test func `are not made where nobody needs them, nor of several sizes`() throws {
        let (good, viewer, _) = try begin(seed: 8)
        var making = RenditionMaking()
        good.cap(viewer, CappedLink(bitrate: 5_000_000))
        try making.run(good, for: .seconds(20))
        #expect(making.wishes.isEmpty)

        var settings = SyntheticVideo.Settings()
        let layers = [2_000_000, 900_000].map { bitrate in
            settings.bitrate = bitrate
            return settings
        }
        let several = try Simulation(seed: 9, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        _ = try several.add(.publisher, rids: ["h", "l"], layers: layers)
        let (weak, _) = try several.add(.viewer)
        #expect(several.run(for: .seconds(5)) { weak.decoder.framesDecoded > 0 })
        several.cap(weak, CappedLink(bitrate: 300_000))
        making = RenditionMaking()
        try making.run(several, for: .seconds(20))
        #expect(making.wishes.isEmpty)
    }
}
