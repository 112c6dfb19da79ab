import Base
import Codecs
import TestSupport
import Testing
import Wire

@testable import Transcoder

/// Decodes what a converter makes, as a browser would.
private struct ConversionViewer {
    struct Shown {
        let timestamp: UInt32
        let captured: MonotonicTime?
        let isKeyFrame: Bool
        let picture: Picture
    }

    private var assembler = FrameAssembler()
    private let decoder: VideoDecoder
    private var sequence: Int64 = 0
    private(set) var shown: [Shown] = []

    init() throws {
        decoder = try VideoDecoder(.vp8)
    }

    mutating func take(_ packets: [OutputPacket], at now: MonotonicTime) throws {
        for packet in packets {
            let header = try RTPHeader(parsing: packet.bytes.span)
            let payload = Array(packet.bytes[header.payloadRange])
            let info = try VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
            let input = InputPacket(
                sequenceNumber: sequence, timestamp: header.timestamp, marker: header.marker, codec: .vp8,
                isEntryPoint: info.startsKeyFrame, arrival: now, captured: packet.captured, payload: payload)
            sequence += 1
            for frame in assembler.insert(input, at: now) {
                shown.append(
                    Shown(
                        timestamp: frame.timestamp, captured: frame.captured, isKeyFrame: frame.isKeyFrame,
                        picture: try #require(try decoder.decode(frame.bytes))))
            }
        }
    }
}

@Suite struct `A picture converter` {
    private static let step: UInt32 = 3_000
    private let start = MonotonicTime(nanoseconds: 9_000_000_000)
    private let converter = PictureConverter(seed: 3) { try? VideoDecoder($0, reorders: true) }
    private var viewer: ConversionViewer
    private var sequence: Int64 = 0

    init() throws {
        viewer = try ConversionViewer()
    }

    /// A frame's units, each as a payload.
    private static func units(_ frame: [UInt8]) -> [[UInt8]] {
        var starts: [Int] = []
        for place in frame.indices.dropLast(2) where frame[place..<(place + 3)].elementsEqual([0, 0, 1]) {
            starts.append(place + 3)
        }
        return zip(starts, starts.dropFirst().map { $0 - 3 } + [frame.count]).map { first, end in
            var unit = Array(frame[first..<end])
            while unit.last == 0 { unit.removeLast() }
            return unit
        }
    }

    /// When a frame is shown, counted in pictures: I P B B B P B B B.
    private static func place(ofFrame index: Int) -> Int {
        guard index > 0 else { return 0 }
        return index % 4 == 1 ? index + 3 : index - 1
    }

    /// Feeds a frame as it comes, which is 33 ms after the one before.
    /// - Parameter lateness: between its coming and its being looked at.
    private mutating func feed(
        _ frame: [UInt8], _ index: Int, isKeyFrame: Bool, lateness: Duration = .zero
    ) throws {
        let payloads = Self.units(frame)
        let place = UInt32(Self.place(ofFrame: index))
        let arrival = start + .milliseconds(33 * index)
        for (number, payload) in payloads.enumerated() {
            let packet = InputPacket(
                sequenceNumber: sequence, timestamp: 1_000 &+ place &* Self.step,
                marker: number == payloads.count - 1, codec: .h264, isEntryPoint: isKeyFrame && number == 0,
                arrival: arrival, captured: start + .milliseconds(33 * Int(place)), payload: payload)
            sequence += 1
            try viewer.take(converter.receive(packet, at: arrival + lateness), at: arrival)
        }
    }

    @Test mutating func `shows pictures in their order, and in time with the sound`() throws {
        let frames = try SampleVideo.reorderedFrames(count: 13)
        try #require(frames.count == 13)
        for (index, frame) in frames.enumerated() { try feed(frame, index, isKeyFrame: index == 0) }
        // The decoder keeps the last ones until something follows.
        #expect(viewer.shown.count >= 9)
        for (index, shown) in viewer.shown.enumerated() {
            #expect(shown.timestamp == 1_000 + UInt32(index) * Self.step)
            #expect(shown.captured == start + .milliseconds(33 * index))
            #expect(shown.isKeyFrame == (index == 0))
            #expect((shown.picture.width, shown.picture.height) == (320, 180))
        }
        let luma = viewer.shown.map { Int($0.picture.luma(x: 160, y: 90) ?? 0) }
        #expect(zip(luma, luma.dropFirst()).allSatisfy { $0 + 5 < $1 }, "each is brighter: \(luma)")
    }

    @Test mutating func `makes key frames for who asks, and with those that come`() throws {
        let frames = try SampleVideo.reorderedFrames(count: 41)
        for (index, frame) in frames.enumerated() {
            // The second one too soon after the first: it waits.
            if index == 20 || index == 24 { converter.requestKeyFrame() }
            try feed(frame, index, isKeyFrame: index == 0)
        }
        for (index, frame) in frames.prefix(13).enumerated() {
            try feed(frame, index + 44, isKeyFrame: index == 0)
        }
        let places = viewer.shown.filter(\.isKeyFrame).map { ($0.timestamp - 1_000) / Self.step }
        try #require(places.count == 4, "\(places)")
        #expect(zip(places, places.dropFirst()).allSatisfy { $1 - $0 >= 15 }, "\(places)")
        #expect((17...21).contains(places[1]) && places[3] >= 40, "\(places)")
    }

    @Test mutating func `catches up by leaving out, and decodes all`() throws {
        let frames = try SampleVideo.reorderedFrames(count: 25)
        for (index, frame) in frames.enumerated() {
            try feed(
                frame, index, isKeyFrame: index == 0,
                lateness: index < 16 ? PictureConverter.latenessLimit : .milliseconds(5))
        }
        let first = try #require(viewer.shown.first)
        #expect(first.isKeyFrame && first.timestamp > 1_000 + 8 * Self.step)
        #expect(
            zip(viewer.shown, viewer.shown.dropFirst()).allSatisfy {
                $1.timestamp - $0.timestamp == Self.step
            })
        #expect(Int(first.picture.luma(x: 160, y: 90) ?? 0) > 60, "it is the picture of that time")
    }

    @Test mutating func `goes on with a key frame after what makes no sense, and gives up in the end`() throws
    {
        let frames = try SampleVideo.reorderedFrames(count: 13)
        try feed(frames[0], 0, isKeyFrame: true)
        for index in 1..<20 { try feed([0, 0, 1, 0x41, 0xFF, 0xFF], index * 4, isKeyFrame: false) }
        let before = viewer.shown.count
        for (index, frame) in frames.enumerated() { try feed(frame, 100 + index, isKeyFrame: index == 0) }
        #expect(viewer.shown.count > before && !converter.isHopeless)
        for index in 0..<PictureConverter.failureLimit {
            try feed([0, 0, 1, 0x65, 0xFF, 0xFF], 200 + index * 4, isKeyFrame: true)
        }
        #expect(converter.isHopeless)
    }

    @Test mutating func `makes large pictures smaller, and of few colours`() throws {
        let bytes = try SampleVideo.ffmpeg([
            "-f", "lavfi", "-i", "testsrc2=s=1920x1080:r=30", "-frames:v", "2", "-pix_fmt", "yuv420p10le",
            "-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "high10", "-tune", "zerolatency", "-f",
            "h264", "-",
        ])
        try feed(bytes, 0, isKeyFrame: true)
        let picture = try #require(viewer.shown.first?.picture)
        #expect((picture.width, picture.height) == (1_280, 720))
    }
}
