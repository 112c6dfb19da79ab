import Base
import Codecs
import Testing
import Wire

@testable import Transcoder

/// Decodes what a maker makes, as a viewer would who gets all of it, the lower layer, or the stills.
private struct RenditionViewer {
    private var assembler = FrameAssembler()
    private var decoder: VideoDecoder
    private let isLowerOnly: Bool
    private let kind: RenditionPacket.Kind
    private var sequence: Int64 = 0
    private(set) var pictures: [Picture] = []
    private(set) var timestamps: [UInt32] = []
    private(set) var keyFrames = 0
    private(set) var bytes = 0

    init(_ kind: RenditionPacket.Kind = .low, isLowerOnly: Bool = false) throws {
        self.kind = kind
        self.isLowerOnly = isLowerOnly
        decoder = try VideoDecoder(.vp8)
    }

    mutating func take(_ packets: [RenditionPacket], at now: MonotonicTime) throws {
        for packet in packets where packet.kind == kind {
            let header = try RTPHeader(parsing: packet.bytes.span)
            let payload = Array(packet.bytes[header.payloadRange])
            let info = try VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
            if isLowerOnly, info.temporalLayer > 0 { continue }
            bytes += packet.bytes.count
            let input = InputPacket(
                sequenceNumber: sequence, timestamp: header.timestamp, marker: header.marker, codec: .vp8,
                isEntryPoint: info.startsKeyFrame, arrival: now, payload: payload)
            sequence += 1
            for frame in assembler.insert(input, at: now) {
                keyFrames += frame.isKeyFrame ? 1 : 0
                timestamps.append(frame.timestamp)
                pictures.append(try #require(try decoder.decode(frame.bytes)))
            }
        }
    }
}

@Suite struct `Renditions of a track` {
    static let settings = RenditionSettings(bitrate: 340_000, lowerLayerShare: 45, stillsBitrate: 36_000)
    private var now = MonotonicTime(nanoseconds: 5_000_000_000)
    private let maker: RenditionMaker

    init() {
        maker = RenditionMaker(Self.settings, seed: 7, at: now) { try? VideoDecoder($0) }
    }

    /// Something that moves, and is not easy to encode.
    private func picture(_ number: Int, width: Int, height: Int) throws -> Picture {
        var picture = try Picture(width: width, height: height, luma: 90)
        // The same each time, moved.
        var noise: UInt64 = 1
        for index in 0..<60 {
            noise = noise &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let x = (Int(noise >> 40) + number * 8) % (width - 80)
            picture.fill(
                x: x & ~1, y: (Int(noise >> 20 & 0xFFFF) % (height - 80)) & ~1, width: 64, height: 64,
                with: DrawingColor(luma: UInt8(40 + index * 3), u: 100, v: UInt8(90 + index)))
        }
        return picture
    }

    private mutating func send(
        _ speaker: inout SyntheticSpeaker, _ frames: Int, width: Int = 1_280, height: Int = 720,
        every step: Duration = .nanoseconds(33_333_333),
        _ take: ([RenditionPacket], MonotonicTime) throws -> Void
    ) throws {
        for number in 0..<frames {
            let picture = try picture(number, width: width, height: height)
            for packet in try speaker.frame(picture, at: now) { maker.receive(packet, at: now) }
            try take(maker.advance(to: now), now)
            now = now + step
        }
    }

    @Test mutating func `are smaller, in two temporal layers, and keep to their bit rate`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 1_280, height: 720)
        var (all, lower) = (try RenditionViewer(), try RenditionViewer(isLowerOnly: true))
        try send(&speaker, 150) { packets, now in
            try all.take(packets, at: now)
            try lower.take(packets, at: now)
        }
        #expect(all.pictures.count >= 148 && lower.pictures.count >= 74)
        #expect(lower.pictures.count <= all.pictures.count / 2 + 1)
        #expect(all.pictures.allSatisfy { ($0.width, $0.height) == (640, 360) })
        #expect(all.keyFrames == 1)
        // Five seconds.
        #expect(all.bytes * 8 / 5 < 340_000 * 13 / 10, "\(all.bytes * 8 / 5)")
        #expect(lower.bytes * 100 / all.bytes < 65, "\(lower.bytes) of \(all.bytes)")
    }

    @Test mutating func `have the time stamps of what was captured`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 640, height: 360)
        var viewer = try RenditionViewer()
        try send(&speaker, 30, width: 640, height: 360) { try viewer.take($0, at: $1) }
        let steps = zip(viewer.timestamps, viewer.timestamps.dropFirst()).map { $1 &- $0 }
        #expect(steps.allSatisfy { (2_990...3_010).contains($0) }, "\(steps)")
    }

    @Test mutating func `stand upright, and are not made larger`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 720, height: 1_280)
        var viewer = try RenditionViewer()
        try send(&speaker, 3, width: 720, height: 1_280) { try viewer.take($0, at: $1) }
        var small = try SyntheticSpeaker(2, color: 0, frequency: 1, width: 320, height: 180)
        small.epoch = 1
        try send(&small, 3, width: 320, height: 180) { try viewer.take($0, at: $1) }
        #expect(viewer.pictures.first.map { [$0.width, $0.height] } == [360, 640])
        #expect(viewer.pictures.last.map { [$0.width, $0.height] } == [320, 180])
    }

    @Test mutating func `have no more than thirty pictures a second`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 640, height: 360)
        var viewer = try RenditionViewer()
        try send(&speaker, 120, width: 640, height: 360, every: .nanoseconds(16_666_667)) {
            try viewer.take($0, at: $1)
        }
        #expect((58...61).contains(viewer.pictures.count), "\(viewer.pictures.count)")
    }

    /// What comes in a heap is the past, which is only decoded.
    @Test mutating func `begin with the newest picture`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 640, height: 360)
        var viewer = try RenditionViewer()
        for number in 0..<60 {
            let picture = try picture(number, width: 640, height: 360)
            for packet in try speaker.frame(picture, at: now) { maker.receive(packet, at: now) }
        }
        try viewer.take(maker.advance(to: now), at: now)
        try viewer.take(maker.advance(to: now), at: now)
        #expect(viewer.pictures.count == 1 && viewer.keyFrames == 1)
    }

    @Test mutating func `have a key frame when one is asked for, but not one after the other`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 640, height: 360)
        var viewer = try RenditionViewer()
        let maker = maker
        try send(&speaker, 60, width: 640, height: 360) { packets, now in
            try viewer.take(packets, at: now)
            maker.requestKeyFrame(of: .low)
        }
        #expect((3...5).contains(viewer.keyFrames), "\(viewer.keyFrames)")
    }

    @Test mutating func `have a still every two seconds, each by itself`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 1_280, height: 720)
        var viewer = try RenditionViewer(.stills)
        try send(&speaker, 301) { try viewer.take($0, at: $1) }
        #expect((5...6).contains(viewer.pictures.count), "\(viewer.pictures.count)")
        #expect(viewer.keyFrames == viewer.pictures.count)
        #expect(viewer.bytes * 8 / 10 < 36_000 * 13 / 10, "\(viewer.bytes * 8 / 10)")
        let before = viewer.pictures.count
        maker.requestKeyFrame(of: .stills)
        try send(&speaker, 20) { try viewer.take($0, at: $1) }
        #expect(viewer.pictures.count == before + 1)
    }

    @Test mutating func `ask the publisher for a key frame where there is nothing to begin with`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 640, height: 360)
        _ = try speaker.frame(at: now)
        #expect(!maker.takeKeyFrameWish())
        try send(&speaker, 5, width: 640, height: 360) { packets, _ in #expect(packets.isEmpty) }
        #expect(maker.takeKeyFrameWish())
        speaker.requestKeyFrame()
        var viewer = try RenditionViewer()
        try send(&speaker, 5, width: 640, height: 360) { try viewer.take($0, at: $1) }
        #expect(viewer.pictures.count == 5)
    }

    /// A publisher's clock that is set back is no reason to wait until it has caught up.
    @Test mutating func `go on where capture times go back`() throws {
        var speaker = try SyntheticSpeaker(1, color: 0, frequency: 1, width: 640, height: 360)
        var viewer = try RenditionViewer()
        try send(&speaker, 30, width: 640, height: 360) { try viewer.take($0, at: $1) }
        now = now + .seconds(-20)
        speaker.epoch = 1
        speaker.requestKeyFrame()
        try send(&speaker, 30, width: 640, height: 360) { try viewer.take($0, at: $1) }
        #expect(viewer.pictures.count >= 58, "\(viewer.pictures.count)")
        #expect(zip(viewer.timestamps, viewer.timestamps.dropFirst()).allSatisfy { $0 < $1 })
    }
}
