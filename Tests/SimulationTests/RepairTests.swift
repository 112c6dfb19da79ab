import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// What a viewer may ask for again, shown with packets that the test makes itself.
@Suite(.simulated) struct `What a viewer lost` {
    private static let id = InjectionID(number: 7)

    private let simulation: Simulation
    private let viewer: SimulatedClient
    private let tracks: [PublishedTrack]
    private var ssrc: UInt32 = 5
    private var sequenceNumber: UInt16 = 65_530

    /// Has a viewer that is connected, and a publisher's track that it does not get yet.
    private init(seed: UInt64, codec: MediaCodec, hasRTX: Bool = true) throws {
        simulation = try Simulation(seed: seed, conditions: .init(delay: .milliseconds(5)))
        let viewer = try simulation.add(.viewer, hasRTX: hasRTX).client
        self.viewer = viewer
        #expect(simulation.run(for: .seconds(2)) { viewer.isConnected })
        let plan = SourcePlan(mid: "v", kind: .video, formats: [MediaFormat(codec: codec, payloadType: 96)])
        simulation.perform(.openInjection(InjectionOpening(id: Self.id, sources: [plan])))
        var tracks: [PublishedTrack] = []
        for case .injected(Self.id, let opened) in simulation.events { tracks = opened }
        self.tracks = tracks
    }

    private func watch() {
        simulation.perform(.setProgramme(Simulation.stream, tracks))
    }

    private mutating func send(_ payloads: [[UInt8]], timestamp: UInt32, for duration: Duration) throws {
        var packets = InjectedPackets()
        for (index, payload) in payloads.enumerated() {
            var bytes = [UInt8](repeating: 0, count: 12) + payload
            var span = bytes.mutableSpan
            _ = try RTPHeaderWriter(
                marker: index == payloads.count - 1, payloadType: 96, sequenceNumber: sequenceNumber,
                timestamp: timestamp, ssrc: ssrc, into: &span)
            sequenceNumber &+= 1
            packets.append(bytes.span, source: 0, captured: simulation.now)
        }
        simulation.perform(.inject(Self.id, packets))
        simulation.run(for: duration)
    }

    private var refusals: MediaCounters.Refusals { simulation.workers[0].statistics.media.refusals }

    /// Parameter sets and picture are packets of their own, and a decoder needs all of them.
    @Test(arguments: 0..<3) static func `a lost head of an H.264 key frame is sent again`(place: Int) throws {
        var scene = try Self(seed: 61, codec: .h264(packetizationMode: 1))
        let keyFrame: [[UInt8]] = [
            [0x67, 0x42, 0xC0, 0x1F, 0x8C], [0x68, 0xCE, 0x3C, 0x80, 0], [0x65, 0x88, 0x84, 0, 1],
        ]
        scene.watch()
        try scene.send([[0x67, 0x42, 0xC0, 0x1F], [0x65, 0x88, 1]], timestamp: 0, for: .milliseconds(30))
        try scene.send([[0x41, 0x9A, 0, 1]], timestamp: 3_000, for: .milliseconds(30))
        try scene.send(keyFrame, timestamp: 6_000, for: .milliseconds(30))
        let received = scene.viewer.playoutDelays.suffix(keyFrame.count).map(\.sequenceNumber)
        // Before the viewer, who sees no picture in any of this, asks for a key frame.
        scene.simulation.ask(for: [UInt16(truncatingIfNeeded: received[place])], by: scene.viewer)
        scene.simulation.run(for: .milliseconds(30))
        #expect(scene.viewer.repairs == 1)
        #expect(scene.refusals == MediaCounters.Refusals())
    }

    /// The key frame is 3.8 s old when the viewer begins, and older than any that is kept for others when it has
    /// caught up.
    @Test static func `a lost packet of a replay is sent again, however old it is`() throws {
        var scene = try Self(seed: 62, codec: .vp8)
        var settings = SyntheticVideo.Settings()
        settings.bitrate = 2_000_000
        // Cheap, so that the group need not last longer than usual to spare the publisher another one.
        settings.keyFrameRatio = 1
        var random = SeededGenerator(seed: 62)
        var video = SyntheticVideo(settings, using: &random)
        scene.viewer.dropsVideo = { $0 % 100 == 7 }
        for number in 0..<150 {
            if number == 114 { scene.watch() }
            let packets = video.nextFrame()
            guard let timestamp = packets.first?.timestamp else { continue }
            try scene.send(packets.map(\.payload), timestamp: timestamp, for: .milliseconds(33))
        }
        scene.simulation.run(for: .seconds(2))
        #expect(scene.viewer.decoder.framesDecoded == 150)
        #expect(scene.viewer.decoder.complaints.isEmpty)
        #expect(scene.viewer.repairs > 5)
        #expect(scene.refusals.notInHistory == 0)
    }

    /// Without RTX a packet is repeated under its own number, and AES-GCM's nonce is made of that.
    @Test static func `a packet lost before a restart is not replaced by a new one with its number`() throws {
        var scene = try Self(seed: 63, codec: .h264(packetizationMode: 1), hasRTX: false)
        scene.watch()
        scene.sequenceNumber = 100
        try scene.send([[0x67, 0x42, 0xC0, 0x1F], [0x65, 0x88, 1]], timestamp: 0, for: .milliseconds(30))
        for number in 1..<20 {
            let timestamp = UInt32(number) * 3_000
            try scene.send([[0x41, 0x9A, UInt8(number)]], timestamp: timestamp, for: .milliseconds(30))
        }
        let received = scene.viewer.playoutDelays.map(\.sequenceNumber)
        #expect(received.count > 15)
        scene.ssrc = 6
        scene.sequenceNumber = 95
        for number in 0..<40 {
            let timestamp = UInt32(number) * 3_000
            try scene.send([[0x41, 0x9A, 99, UInt8(number)]], timestamp: timestamp, for: .milliseconds(5))
        }
        scene.simulation.ask(for: received.map { UInt16(truncatingIfNeeded: $0) }, by: scene.viewer)
        scene.simulation.run(for: .milliseconds(100))
        #expect(scene.refusals.notInHistory >= UInt64(received.count))
        #expect(scene.viewer.ambiguousPackets == 0)
    }

    /// Packets that are too large for the viewer hide how far the source's numbers leap between those that are sent.
    @Test(arguments: [(32_766, 2), (2_990, 12), (2_990, 60)])
    static func `a leap in the source's numbers does not make later packets lost`(
        leap: Int, count: Int
    ) throws {
        var scene = try Self(seed: 64, codec: .vp8)
        var random = SeededGenerator(seed: 64)
        var video = SyntheticVideo(SyntheticVideo.Settings(), using: &random)
        scene.watch()
        for _ in 0..<20 { try scene.send(&video) }
        for _ in 0..<count {
            scene.sequenceNumber &+= UInt16(leap)
            try scene.send(
                [[0x00] + [UInt8](repeating: 1, count: 1_459)], timestamp: 9, for: .milliseconds(5))
        }
        scene.sequenceNumber &+= UInt16(leap)
        video.requestKeyFrame()
        let before = scene.viewer.decoder.framesDecoded
        for _ in 0..<30 { try scene.send(&video) }
        #expect(scene.viewer.decoder.framesDecoded >= before + 28)
    }

    private mutating func send(_ video: inout SyntheticVideo) throws {
        let packets = video.nextFrame()
        guard let timestamp = packets.first?.timestamp else { return }
        try send(packets.map(\.payload), timestamp: timestamp, for: .milliseconds(33))
    }
}
