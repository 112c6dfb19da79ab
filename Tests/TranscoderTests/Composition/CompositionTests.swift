import Base
import Codecs
import TestSupport
import Testing
import Wire

@testable import Transcoder

@Suite struct Compositions {
    private static let red: UInt32 = 0xC0_20_20
    private static let green: UInt32 = 0x20_A0_30
    private static let blue: UInt32 = 0x20_30_C0
    private static let yellow: UInt32 = 0xC0_B0_20

    private func two() throws -> CompositionRig {
        try CompositionRig([
            SyntheticSpeaker(1, color: Self.red, frequency: 500),
            SyntheticSpeaker(2, color: Self.blue, frequency: 1_300),
        ])
    }

    @Test func `show two speakers side by side and mix their voices`() throws {
        var rig = try two()
        try rig.run(for: .seconds(2))
        #expect(rig.sees(DrawingColor(rgb: Self.red), x: 160, y: 100))
        #expect(rig.sees(DrawingColor(rgb: Self.blue), x: 480, y: 100))
        #expect(rig.strength(500) > 0.15)
        #expect(rig.strength(1_300) > 0.15)
        #expect(rig.strength(880) < 0.02)
        #expect(rig.shown.count > 50)
        #expect(rig.smallFrames > 20)
    }

    @Test func `begin with a key frame and make one every two seconds, and when asked`() throws {
        var rig = try two()
        try rig.run(for: .seconds(5))
        #expect(rig.shown.first?.isKeyFrame == true)
        let keys = rig.shown.filter(\.isKeyFrame).map(\.at)
        #expect(keys.count == 3)
        for (earlier, later) in zip(keys, keys.dropFirst()) {
            #expect(abs((later - earlier).wholeNanoseconds - 2_000_000_000) < 40_000_000)
        }
        rig.composition.requestKeyFrame()
        try rig.run(for: .milliseconds(400))
        #expect(rig.shown.suffix(12).contains { $0.isKeyFrame })
    }

    @Test func `never stop while somebody comes, goes or turns the camera off`() throws {
        var rig = try two()
        try rig.run(for: .seconds(1))
        let start = rig.now
        rig.speakers.append(try SyntheticSpeaker(3, color: Self.green, frequency: 2_100))
        rig.update { _ in }
        try rig.run(for: .seconds(1))
        // Two above, one in the middle below.
        #expect(rig.sees(DrawingColor(rgb: Self.red), x: 160, y: 60))
        #expect(rig.sees(DrawingColor(rgb: Self.green), x: 320, y: 240))
        #expect(rig.strength(2_100) > 0.1)
        rig.withoutVideo = ["Speaker 2"]
        rig.update { $0[1].hasPicture = false }
        try rig.run(for: .seconds(1))
        #expect(!rig.sees(DrawingColor(rgb: Self.blue), x: 480, y: 40))
        #expect(rig.strength(1_300) > 0.1)
        rig.speakers.remove(at: 0)
        rig.update { $0[0].hasPicture = false }
        try rig.run(for: .seconds(1))
        #expect(rig.sees(DrawingColor(rgb: Self.green), x: 480, y: 100))
        #expect(rig.strength(500) < 0.05)
        #expect(rig.longestGap(since: start) <= .milliseconds(67))
    }

    @Test func `repeat the last picture of somebody whose pictures stay out`() throws {
        var rig = try two()
        try rig.run(for: .seconds(1))
        let start = rig.now
        rig.withoutVideo = ["Speaker 1"]
        rig.withoutAudio = ["Speaker 1"]
        try rig.run(for: .seconds(2))
        #expect(rig.sees(DrawingColor(rgb: Self.red), x: 160, y: 100))
        #expect(rig.strength(1_300) > 0.15)
        #expect(rig.longestGap(since: start) <= .milliseconds(67))
    }

    @Test func `go up to nine, each in a place of their own`() throws {
        let colors: [UInt32] = [
            0xC0_20_20, 0x20_A0_30, 0x20_30_C0, 0xC0_B0_20, 0xA0_20_A0, 0x20_A0_A0, 0xE0_E0_E0, 0x70_40_20,
            0x50_50_50,
        ]
        let speakers = try colors.enumerated().map { index, color in
            try SyntheticSpeaker(index + 1, color: color, frequency: 400 + Double(index) * 270)
        }
        var rig = try CompositionRig(speakers)
        try rig.run(for: .milliseconds(1_500))
        let frames = TileLayout.frames(9, width: 640, height: 360, layout: .grid)
        for (frame, color) in zip(frames, colors) {
            #expect(
                rig.sees(
                    DrawingColor(rgb: color), x: frame.x + frame.width / 2, y: frame.y + frame.height / 3))
        }
    }

    @Test func `frame whoever speaks`() throws {
        var rig = try two()
        try rig.run(for: .milliseconds(600))
        #expect(!rig.sees(DrawingColor(rgb: 0x3D_DC_84), x: 160, y: 10))
        rig.update { $0[0].isSpeaking = true }
        try rig.run(for: .milliseconds(300))
        #expect(rig.sees(DrawingColor(rgb: 0x3D_DC_84), x: 160, y: 10))
    }

    @Test func `conceal packets of sound that are lost or late`() throws {
        var rig = try two()
        rig.withoutAudio = ["Speaker 2"]
        rig.dropsSound = { $0.isMultiple(of: 14) }
        rig.delay = { .milliseconds(($0 * 7) % 40) }
        try rig.run(for: .seconds(3))
        #expect(rig.strength(500) > 0.15)
        // Seconds of sound, without a hole.
        #expect(rig.sound.count >= 48_000 * 2 * 2)
        let loud = rig.sound.suffix(48_000).filter { abs($0) > 0.02 }
        #expect(loud.count > 40_000)
    }

    @Test func `keep voice and picture of a speaker together`() throws {
        // White and a tone in the same moment, black and silence before.
        var rig = try CompositionRig([
            SyntheticSpeaker(1, color: 0, frequency: 1_000),
            SyntheticSpeaker(2, color: 0, frequency: 300),
        ])
        rig.withoutAudio = ["Speaker 1", "Speaker 2"]
        try rig.run(for: .seconds(1))
        rig.speakers[0].color = .white
        rig.withoutAudio = ["Speaker 2"]
        let (frames, samples) = (rig.shown.count, rig.sound.count)
        var sawAt: Int?
        for step in 0..<60 {
            try rig.run(for: .milliseconds(10))
            if sawAt == nil, rig.sees(.white, x: 160, y: 100) { sawAt = step * 10 }
        }
        #expect(rig.shown.count > frames)
        let heard = rig.sound[samples...].firstIndex { abs($0) > 0.05 }.map { ($0 - samples) / 96 }
        let (saw, hear) = (try #require(sawAt), try #require(heard))
        #expect(abs(saw - hear) <= 60)
    }

    @Test func `give way before anything queues when composing is too dear`() throws {
        var governor = OverloadGovernor()
        var now = MonotonicTime(nanoseconds: 1)
        var levels: [Int] = []
        for _ in 0..<400 {
            _ = governor.note(.milliseconds(32), missed: 0, at: now)
            now = now + .milliseconds(33)
            levels.append(governor.index)
        }
        #expect(levels.last == OverloadGovernor.levels.count - 1)
        #expect(OverloadGovernor.levels.allSatisfy { $0.rate == 100 || $0.size == 100 || $0.rate < 67 })
        for _ in 0..<6_000 {
            _ = governor.note(.milliseconds(3), missed: 0, at: now)
            now = now + .milliseconds(33)
        }
        #expect(governor.index == 0)
        // Others have the processor: smaller pictures would not help.
        for _ in 0..<1_000 {
            _ = governor.note(.milliseconds(3), missed: 1, at: now)
            now = now + .milliseconds(66)
        }
        #expect(governor.level.size == 100)
        #expect(governor.level.rate < 100)
    }

    @Test(arguments: UInt64(1)...40) func `survive packets that make no sense`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let speaker = try SyntheticSpeaker(1, color: Self.red, frequency: 500)
        let composition = Composition(
            CompositionScene(settings: CompositionRig.settings(), speakers: [speaker.person]), seed: seed,
            at: .zero)
        var now = MonotonicTime.zero
        for _ in 0..<300 {
            let codec = InputCodec(rawValue: UInt8(random.next() % 5)) ?? .vp8
            var packet = InputPacket(
                sequenceNumber: Int64(random.next() % 64),
                timestamp: UInt32(truncatingIfNeeded: random.next()),
                marker: random.next() % 2 == 0, codec: codec, isEntryPoint: random.next() % 3 == 0,
                epoch: UInt32(random.next() % 2), arrival: now)
            packet.payload = (0..<(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            if random.next() % 4 == 0 {
                packet.captured = MonotonicTime(nanoseconds: Int64(bitPattern: random.next()))
            }
            composition.receive(packet, of: random.next() % 2 == 0 ? speaker.video : speaker.audio, at: now)
            now = now + .milliseconds(5)
            _ = composition.advance(to: now)
        }
    }
}
