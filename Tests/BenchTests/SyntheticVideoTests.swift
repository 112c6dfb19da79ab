import Base
import ClientPeer
import TestSupport
import Testing
import Wire

/// A source with the usual settings, but for what `change` sets.
private func source(_ change: (inout SyntheticVideo.Settings) -> Void = { _ in }) -> SyntheticVideo {
    var settings = SyntheticVideo.Settings()
    change(&settings)
    var random = SeededGenerator(seed: 7)
    return SyntheticVideo(settings, using: &random)
}

private func size(_ frame: [SyntheticVideo.Packet]) -> Int { frame.reduce(0) { $0 + $1.payload.count } }

@Suite struct `Synthetic video` {
    /// 800 kbit/s at 25 pictures a second are 4,000 bytes for each.
    private func small() -> SyntheticVideo {
        source { ($0.bitrate, $0.framesPerSecond, $0.keyFrameRatio) = (800_000, 25, 8) }
    }

    private func frames(_ count: Int, of video: inout SyntheticVideo) -> [[SyntheticVideo.Packet]] {
        (0..<count).map { _ in video.nextFrame() }
    }

    private func vp8(_ packet: SyntheticVideo.Packet) throws -> VP8Descriptor {
        let payload = packet.payload
        return try VP8Descriptor(parsing: payload.span)
    }

    @Test func `pays for a key frame by smaller frames, until its rate is kept`() {
        var video = small()
        let sizes = frames(50, of: &video).map(size)
        #expect(sizes[0] == 32_000)
        #expect(Set(sizes[1...28]) == [3_000])
        #expect(Set(sizes[29...]) == [4_000])
        #expect(sizes.reduce(0, +) == 200_000)
    }

    @Test func `pays for key frames that follow each other`() {
        var video = small()
        var total = 0
        for index in 0..<100 {
            if index < 3 { video.requestKeyFrame() }
            let frame = video.nextFrame()
            #expect(frame.allSatisfy { $0.isKeyFrame == (index < 3) })
            total += size(frame)
        }
        #expect(total == 400_000)
    }

    @Test func `makes a key frame first, and then one for any number of requests`() {
        var video = small()
        var keys: [Bool] = []
        for index in 0..<8 {
            if index == 3 || index == 6 {
                video.requestKeyFrame()
                video.requestKeyFrame()
            }
            keys.append(video.nextFrame()[0].isKeyFrame)
        }
        #expect(keys == [true, false, false, true, false, false, true, false])
    }

    @Test(arguments: [10_000, 200_000, 276_000, 276_240, 1_500_000, 6_000_000])
    func `cuts a frame into packets of almost one size`(bitrate: Int) {
        var video = source { $0.bitrate = bitrate }
        for frame in frames(3, of: &video) {
            let sizes = frame.map(\.payload.count)
            #expect(sizes.allSatisfy { $0 <= 1_150 })
            // The larger ones come last.
            #expect(sizes == sizes.sorted() && sizes[sizes.count - 1] - sizes[0] <= 1)
            #expect(frame.map(\.marker) == frame.indices.map { $0 == frame.count - 1 })
            #expect(Set(frame.map(\.timestamp)).count == 1)
        }
    }

    @Test(
        arguments: [(25, 3_600, 40_000_000), (30, 3_000, 33_333_333), (0, 90_000, 1_000_000_000)]
            as [(Int, UInt32, Int64)])
    func `shows its frames at its rate, whatever that is`(rate: Int, ticks: UInt32, nanoseconds: Int64) {
        var video = source { $0.framesPerSecond = rate }
        let stamps = frames(4, of: &video).map { $0[0].timestamp }
        #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $1 &- $0 == ticks })
        #expect(video.frameInterval == .nanoseconds(nanoseconds))
    }

    @Test func `has a picture in every frame, however low its bit rate is`() throws {
        var video = source { $0.bitrate = 0 }
        for (index, frame) in frames(3, of: &video).enumerated() {
            #expect(frame.count == 1 && frame[0].marker)
            let payload = frame[0].payload
            let mark = try SyntheticMark(reading: payload.span)
            #expect(mark.frameNumber == UInt32(index))
        }
    }

    @Test func `marks every packet with its frame and its place in it`() throws {
        for layers in 1...3 {
            var video = source { $0.temporalLayers = layers }
            for number in 0..<5 {
                let stamp = 0x0123_4567_89AB_CDEF + UInt64(number)
                for (index, packet) in video.nextFrame(stamp: stamp).enumerated() {
                    let payload = packet.payload
                    let mark = try SyntheticMark(reading: payload.span)
                    #expect(mark.stamp == stamp && mark.frameNumber == UInt32(number))
                    #expect(mark.packetIndex == UInt16(index))
                }
            }
        }
    }

    @Test func `announces the size of its pictures in key frames`() throws {
        var video = source { ($0.width, $0.height) = (1_920, 1_080) }
        let sizes = try frames(2, of: &video).map { frame in
            let payload = frame[0].payload
            return try VideoPayload.describe(.vp8, payload: payload.span, marker: false).resolution
        }
        #expect(sizes == [VideoResolution(width: 1_920, height: 1_080), nil])
    }

    @Test func `numbers its pictures with fifteen bits`() throws {
        var video = source { $0.bitrate = 0 }
        let numbers = try (0..<40_000).map { _ -> UInt16 in
            let packet = video.nextFrame()[0]
            let number = try vp8(packet).pictureID
            return try #require(number)
        }
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { ($0 + 1) & 0x7FFF == $1 })
    }

    // MARK: Temporal layers

    @Test(
        arguments: [
            (2, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [1, 9]), (3, [0, 2, 1, 2, 0, 2, 1, 2, 0, 2], [1, 2, 9]),
        ] as [(Int, [UInt8], [Int])])
    func `puts every second frame into the highest layer`(count: Int, layers: [UInt8], syncs: [Int]) throws {
        var video = source { $0.temporalLayers = count }
        let read = try frames(10, of: &video).map { try vp8($0[0]) }
        #expect(read.compactMap(\.temporalLayer) == layers)
        #expect(read.indices.filter { read[$0].isLayerSync } == syncs)
        // The number of the latest frame in the lowest layer.
        let lowest = layers.indices.map { end in UInt8(layers[...end].count { $0 == 0 } - 1) }
        #expect(read.compactMap(\.tl0PictureIndex) == lowest)
    }

    @Test func `begins its pattern of layers again with a key frame`() throws {
        var video = source { $0.temporalLayers = 3 }
        _ = frames(6, of: &video)
        video.requestKeyFrame()
        let read = try frames(5, of: &video).map { try vp8($0[0]) }
        #expect(read.map(\.temporalLayer) == [0, 2, 1, 2, 0])
    }

    @Test func `says nothing of layers where it has one`() throws {
        var video = source()
        let packet = video.nextFrame()[0]
        let read = try vp8(packet)
        #expect(read.temporalLayer == nil && read.tl0PictureIndex == nil && !read.isLayerSync)
    }
}

@Suite struct `Synthetic video in spatial layers` {
    private func layered(_ layers: Int, _ codec: VideoCodec) -> SyntheticVideo {
        source {
            ($0.spatialLayers, $0.layeredCodec, $0.bitrate) = (layers, codec, 1_560_000)
        }
    }

    private func vp9(_ packet: SyntheticVideo.Packet) throws -> VP9Descriptor {
        let payload = packet.payload
        return try VP9Descriptor(parsing: payload.span)
    }

    @Test func `doubles its size with each layer`() {
        let settings = layered(3, .vp9).settings
        let sizes = (0..<3).map { settings.size(ofLayer: $0) }
        #expect(sizes.map(\.width) == [320, 640, 1_280] && sizes.map(\.height) == [180, 360, 720])
    }

    @Test(arguments: 2...4) func `of VP9 tells layers and pictures apart`(layers: Int) throws {
        var video = layered(layers, .vp9)
        var last: UInt16?
        for number in 0..<4 {
            let packets = video.nextFrame()
            let read = try packets.map { try vp9($0) }
            #expect(read.map(\.spatialLayer) == read.map(\.spatialLayer).sorted())
            #expect(Set(read.map(\.spatialLayer)) == Set(0..<UInt8(layers)))
            for layer in 0..<UInt8(layers) {
                let own = read.filter { $0.spatialLayer == layer }
                #expect(own.map(\.startsFrame) == own.indices.map { $0 == 0 })
                #expect(own.map(\.endsFrame) == own.indices.map { $0 == own.count - 1 })
            }
            // Layers depend on each other in key pictures alone, and on earlier pictures in all others.
            #expect(read.allSatisfy { $0.isInterPredicted == (number > 0) })
            #expect(read.allSatisfy { $0.isInterLayerPredicted == (number == 0 && $0.spatialLayer > 0) })
            #expect(packets.map(\.marker) == packets.indices.map { $0 == packets.count - 1 })
            let ids = Set(read.map(\.pictureID))
            #expect(ids.count == 1)
            let id = try #require(read[0].pictureID)
            if let last { #expect(id == (last + 1) & 0x7FFF) }
            last = id
        }
    }

    @Test func `of VP9 lets a decoder begin with the first packet of a key picture alone`() throws {
        var video = layered(3, .vp9)
        for number in 0..<3 {
            for (index, packet) in video.nextFrame().enumerated() {
                let payload = packet.payload
                let info = try VideoPayload.describe(.vp9, payload: payload.span, marker: packet.marker)
                let isStart = number == 0 && index == 0
                #expect(info.startsKeyFrame == isStart, "\(number), \(index)")
                let size = isStart ? VideoResolution(width: 1_280, height: 720) : nil
                #expect(info.resolution == size)
                #expect(try vp9(packet).spatialLayerCount == (isStart ? 3 : nil))
            }
        }
    }

    @Test(arguments: [VideoCodec.vp9, .av1])
    func `gives each layer three times the bytes of the one below`(codec: VideoCodec) {
        var video = layered(3, codec)
        let packets = video.nextFrame()
        // 6,500 bytes eight times over: 4,000, 12,000 and 36,000. Rounding takes a byte from a packet at most.
        let sizes = [UInt8(0), 1, 2].map { layer in size(packets.filter { $0.payload.last == layer }) }
        for (found, wanted) in zip(sizes, [4_000, 12_000, 36_000]) {
            #expect((wanted - packets.count...wanted).contains(found))
        }
    }

    @Test(arguments: 2...4) func `of AV1 describes its layers to whoever forwards it`(layers: Int) throws {
        var video = layered(layers, .av1)
        var structure: DependencyStructure?
        var next: UInt16 = 0
        for number in 0..<4 {
            if number == 2 { video.requestKeyFrame() }
            let isKey = number == 0 || number == 2
            var layer: UInt8 = 0
            for (index, packet) in video.nextFrame().enumerated() {
                let (payload, value) = (packet.payload, packet.dependencyDescriptor)
                let read = try DependencyDescriptor(parsing: value.span, structure: structure)
                let isStart = isKey && index == 0
                #expect((read.attachedStructure != nil) == isStart)
                structure = read.attachedStructure ?? structure
                #expect(read.hasLayers && read.spatialLayer == layer && read.frameNumber == next)
                #expect(read.isIndependent == (isKey && layer == 0))
                let info = try VideoPayload.describe(
                    .av1, payload: payload.span, marker: packet.marker, dependencyDescriptor: read)
                #expect(info.startsKeyFrame == isStart && info.startsFrame == read.startsFrame)
                #expect(packet.marker == (read.endsFrame && Int(layer) == layers - 1))
                guard read.endsFrame else { continue }
                layer += 1
                next &+= 1
            }
            #expect(Int(layer) == layers)
        }
        let found = try #require(structure)
        #expect(found.spatialLayerCount == layers && found.decodeTargetCount == layers)
        #expect(found.temporalLayerCount == 1)
        let settings = video.settings
        #expect(found.resolutions == (0..<layers).map { settings.size(ofLayer: $0) })
    }
}

@Suite struct `The tag of a stream` {
    @Test func `is the same for all layers, but for the layer`() {
        let tags = (0...3).map { StreamTag(stream: "s1", layer: $0) }
        #expect(tags.map(\.layer) == [0, 1, 2, 3])
        #expect(Set(tags).count == 4 && Set(tags.map(\.ofStream)) == [tags[0]])
        #expect(StreamTag(stream: "s1", layer: -1) == tags[0])
    }

    @Test func `is another one for another name`() {
        let tags = Set((0..<5_000).map { StreamTag(stream: "stream-\($0)") })
        #expect(tags.count == 5_000)
    }

    @Test func `is told from other bytes, and from a stamp`() {
        let tag = StreamTag(stream: "s1", layer: 2)
        #expect(StreamTag(bits: tag.bits) == tag)
        #expect(StreamTag(bits: 0) == nil && StreamTag(bits: .max) == nil)
        #expect(StreamTag(bits: MediaStamp(.zero).bits) == nil && MediaStamp(bits: tag.bits) == nil)
    }

    @Test(arguments: [-1, 13, 20, Int.max - 8]) func `leaves payloads alone that have no room`(offset: Int) {
        var payload = [UInt8](repeating: 7, count: 20)
        StreamTag(stream: "s1").write(to: &payload, at: offset)
        #expect(payload == [UInt8](repeating: 7, count: 20))
        StreamTag(stream: "s1").write(to: &payload, at: 12)
        #expect(payload[11] == 7 && payload[12] == 0x5E && payload[13] == 0xED)
    }
}
