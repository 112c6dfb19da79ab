import Testing
import TestSupport
import Wire

/// One packet of a capture with all that can be read of it.
struct CapturedPacket {
    var bytes: [UInt8]
    var header: RTPHeader
    var descriptor: DependencyDescriptor?
    var info: VideoPacketInfo

    var payload: [UInt8] { Array(bytes[header.payloadRange]) }
}

/// What a file below Tests/Fixtures/RTP holds.
struct VideoCapture: Sendable, CustomTestStringConvertible {
    var name: String
    var codec: VideoCodec
    var payloadType: UInt8
    /// Of the first key frame.
    var resolution: VideoResolution
    /// Timestamps with a key frame.
    var keyFrames: Int

    init(
        _ name: String, _ codec: VideoCodec, _ payloadType: UInt8, _ width: Int, _ height: Int, keyFrames: Int
    ) {
        self.name = name
        self.codec = codec
        self.payloadType = payloadType
        resolution = VideoResolution(width: width, height: height)
        self.keyFrames = keyFrames
    }

    var testDescription: String { name }

    static let all = [
        VideoCapture("chromium-vp8-l1t3", .vp8, 96, 320, 180, keyFrames: 1),
        VideoCapture("chromium-vp8-simulcast", .vp8, 96, 480, 270, keyFrames: 2),
        VideoCapture("chromium-vp9-l1t1", .vp9, 98, 160, 120, keyFrames: 1),
        VideoCapture("chromium-vp9-l2t2", .vp9, 98, 640, 360, keyFrames: 1),
        VideoCapture("chromium-h264", .h264, 102, 160, 120, keyFrames: 1),
        VideoCapture("chromium-av1-l1t1", .av1, 45, 160, 120, keyFrames: 1),
        VideoCapture("chromium-av1-l2t2", .av1, 45, 480, 270, keyFrames: 1),
        VideoCapture("firefox-vp8-simulcast", .vp8, 120, 480, 270, keyFrames: 2),
        VideoCapture("firefox-vp9-l1t1", .vp9, 121, 160, 120, keyFrames: 1),
        VideoCapture("firefox-av1-l1t1", .av1, 99, 160, 120, keyFrames: 1),
        VideoCapture("gstreamer-vp8", .vp8, 96, 192, 108, keyFrames: 2),
        VideoCapture("gstreamer-vp9", .vp9, 98, 192, 108, keyFrames: 2),
        VideoCapture("gstreamer-h264", .h264, 102, 192, 108, keyFrames: 2),
        VideoCapture("ffmpeg-h264", .h264, 102, 198, 106, keyFrames: 2),
    ]

    static func named(_ name: String) throws -> VideoCapture {
        try #require(all.first { $0.name == name })
    }

    /// The packets of the video itself: no audio, retransmissions or probes.
    func packets() throws -> [CapturedPacket] {
        let capture = try PacketCapture("RTP/\(name).rtp.hex")
        let id = capture.extensionID(RTPExtensionURI.dependencyDescriptor.rawValue)
        var structures: [UInt32: DependencyStructure] = [:]
        return try capture.packets.compactMap { bytes in
            let header = try RTPHeader(parsing: bytes.span)
            guard header.payloadType == payloadType else { return nil }
            var descriptor: DependencyDescriptor?
            if let id, let range = header.extensionRange(id: id, in: bytes.span) {
                descriptor = try DependencyDescriptor(
                    parsing: bytes.span.extracting(range), structure: structures[header.ssrc])
                structures[header.ssrc] = descriptor?.attachedStructure ?? structures[header.ssrc]
            }
            let info = try VideoPayload.describe(
                codec, payload: bytes.span.extracting(header.payloadRange), marker: header.marker,
                dependencyDescriptor: descriptor)
            return CapturedPacket(bytes: bytes, header: header, descriptor: descriptor, info: info)
        }
    }
}

@Suite struct VideoCaptures {
    @Test(arguments: VideoCapture.all) func `begin with a key frame of known size`(capture: VideoCapture)
        throws
    {
        let first = try #require(try capture.packets().first)
        #expect(first.info.isKeyFrame && first.info.startsKeyFrame && first.info.startsFrame)
        #expect(first.info.resolution == capture.resolution)
        #expect(first.info.spatialLayer == 0)
        #expect(first.info.temporalLayer == 0)
    }

    @Test(arguments: VideoCapture.all) func `have as many key frames as were coded`(capture: VideoCapture)
        throws
    {
        let packets = try capture.packets()
        let starts = Set(packets.filter(\.info.startsKeyFrame).map(\.header.timestamp))
        #expect(starts.count == capture.keyFrames)
        #expect(packets.allSatisfy { !$0.info.startsKeyFrame || $0.info.isKeyFrame })
        #expect(packets.allSatisfy { !$0.info.isKeyFrame || starts.contains($0.header.timestamp) })
    }

    @Test(arguments: VideoCapture.all) func `tell where each picture begins and ends`(capture: VideoCapture)
        throws
    {
        let streams = Dictionary(grouping: try capture.packets(), by: \.header.ssrc)
        for packets in streams.values {
            #expect(packets.first?.info.startsFrame == true)
            for (packet, next) in zip(packets, packets.dropFirst()) {
                let isLast = packet.header.timestamp != next.header.timestamp
                #expect(packet.header.marker == isLast)
                if isLast { #expect(packet.info.endsFrame && next.info.startsFrame) }
                let isLastOfLayer = packet.info.spatialLayer != next.info.spatialLayer
                if isLastOfLayer { #expect(packet.info.endsFrame && next.info.startsFrame) }
                if !isLast, !isLastOfLayer { #expect(!packet.info.endsFrame) }
                // H.264 may call several packets the start of a frame, the others only one.
                if !isLast, !isLastOfLayer, capture.codec != .h264 { #expect(!next.info.startsFrame) }
            }
        }
    }

    @Test(arguments: ["chromium-vp9-l2t2", "chromium-av1-l2t2"])
    func `tell spatial and temporal layers`(name: String) throws {
        let packets = try VideoCapture.named(name).packets().filter(\.info.startsFrame)
        let layers = packets.prefix(8).map { [$0.info.spatialLayer, $0.info.temporalLayer] }
        #expect(layers == [[0, 0], [1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1], [1, 1]])
    }

    @Test func `of Firefox have two temporal layers in VP8`() throws {
        let packets = try VideoCapture.named("firefox-vp8-simulcast").packets()
        let first = packets.filter { $0.header.ssrc == packets[0].header.ssrc && $0.info.startsFrame }
        #expect(first.prefix(6).map(\.info.temporalLayer) == [0, 1, 0, 1, 0, 1])
        #expect(first.prefix(2).map(\.info.isTemporalSwitchingPoint) == [true, true])
    }

    /// Two sources of the same truth: the dependency descriptor and the payload.
    @Test(arguments: VideoCapture.all) func `say the same in extension and payload`(capture: VideoCapture)
        throws
    {
        for packet in try capture.packets() {
            guard let descriptor = packet.descriptor else { continue }
            let alone = try VideoPayload.describe(
                capture.codec, payload: packet.payload.span, marker: packet.header.marker)
            #expect(descriptor.hasLayers)
            #expect(descriptor.startsKeyFrame == alone.startsKeyFrame)
            #expect(descriptor.startsFrame == alone.startsFrame)
            #expect(descriptor.endsFrame == alone.endsFrame || capture.codec == .av1)
            // Chromium leaves the layers out of VP8, and AV1 tells them where a unit begins.
            if capture.codec == .vp9 || (capture.codec == .av1 && alone.startsFrame) {
                #expect(descriptor.spatialLayer == alone.spatialLayer)
                #expect(descriptor.temporalLayer == alone.temporalLayer)
            }
            if let structure = descriptor.attachedStructure {
                #expect(structure.resolution == alone.resolution)
                #expect(structure.spatialLayerCount == (capture.name.hasSuffix("l2t2") ? 2 : 1))
            }
        }
    }

    /// A rewriter has to keep the numbers' differences: simulcast encodings share one count of frames.
    @Test(arguments: VideoCapture.all) func `count frames`(capture: VideoCapture) throws {
        let numbers = try capture.packets().filter(\.info.startsFrame).compactMap(\.descriptor?.frameNumber)
        #expect(numbers == numbers.indices.map { UInt16($0 + 1) })
    }

    @Test(arguments: VideoCapture.all) func `never trap when cut short`(capture: VideoCapture) throws {
        for packet in try capture.packets() {
            for length in 0..<min(packet.payload.count, 80) {
                let prefix = Array(packet.payload.prefix(length))
                let info = try? VideoPayload.describe(capture.codec, payload: prefix.span, marker: false)
                if length < (capture.codec == .h264 ? 1 : 2) { #expect(info == nil) }
            }
        }
    }

    @Test(arguments: VideoCapture.all) func `never trap when garbled`(capture: VideoCapture) throws {
        var random = SeededGenerator(seed: 6)
        var understood = 0
        for packet in try capture.packets() {
            for _ in 0..<60 {
                var payload = packet.payload
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    payload[Int.random(in: 0..<min(payload.count, 40), using: &random)] =
                        .random(in: 0...255, using: &random)
                }
                let info = try? VideoPayload.describe(capture.codec, payload: payload.span, marker: true)
                if let info {
                    understood += 1
                    #expect(info.endsFrame)
                    #expect(!info.startsKeyFrame || info.startsFrame)
                }
            }
        }
        #expect(understood > 0)
    }
}
