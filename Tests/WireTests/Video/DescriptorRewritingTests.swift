import Testing
import TestSupport
import Wire

/// Writes into `capacity` bytes after two others; returns what was written.
private func written(
    capacity: Int = 64, _ write: (inout MutableSpan<UInt8>) throws -> Int
) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0xEE, count: capacity + 2)
    var span = buffer.mutableSpan
    let length = try write(&span)
    return Array(buffer[2..<(2 + length)])
}

@Suite struct VP8Descriptors {
    /// Every field: N, S, partition 0, 15-bit picture id, TL0PICIDX, layer 2 with sync, key index 17.
    private let full: [UInt8] = [0xB0, 0xF0, 0x92, 0x34, 0x56, 0xB1, 0x00]

    @Test func `are parsed field by field`() throws {
        let descriptor = try VP8Descriptor(parsing: full.span)
        #expect(descriptor.length == 6)
        #expect(descriptor.isNonReference)
        #expect(descriptor.startsFrame)
        #expect(descriptor.pictureID == 0x1234)
        #expect(descriptor.pictureIDBits == 15)
        #expect(descriptor.tl0PictureIndex == 0x56)
        #expect(descriptor.temporalLayer == 2)
        #expect(descriptor.isLayerSync)
        #expect(descriptor.keyIndex == 17)
    }

    @Test(arguments: 0..<7) func `are refused when cut short`(length: Int) {
        let prefix = Array(full.prefix(length))
        #expect(throws: WireError.truncated) { try VP8Descriptor(parsing: prefix.span) }
    }

    @Test(
        arguments: [
            [0x10], [0x80, 0x00], [0x90, 0x80, 0x81, 0x02], [0x90, 0x40, 9], [0x85, 0x20, 0xC0],
            [0x90, 0x10, 0x1F],
            [0xB0, 0xF0, 0x92, 0x34, 0x56, 0xB1],
        ] as [[UInt8]])
    func `are written as they were`(bytes: [UInt8]) throws {
        let descriptor = try VP8Descriptor(parsing: (bytes + [1]).span)
        #expect(descriptor.length == bytes.count)
        let again = try written { try descriptor.write(into: &$0, at: 2) }
        // Without fields there is no need for the byte that says which there are.
        #expect(again == (bytes == [0x80, 0x00] ? [0x00] : bytes))
    }

    @Test func `grow when a picture id of 7 bits is written`() throws {
        var descriptor = try VP8Descriptor(parsing: [0x90, 0x80, 0x7F, 0x00].span)
        #expect(descriptor.pictureID == 127)
        #expect(descriptor.pictureIDBits == 7)
        descriptor.pictureID = 128
        #expect(try written { try descriptor.write(into: &$0, at: 2) } == [0x90, 0x80, 0x80, 0x80])
    }

    @Test func `can be given a picture id they lacked`() throws {
        var descriptor = try VP8Descriptor(parsing: [0x10, 0x00].span)
        descriptor.pictureID = 0x7FFF
        #expect(try written { try descriptor.write(into: &$0, at: 2) } == [0x90, 0x80, 0xFF, 0xFF])
    }

    @Test func `are not written where there is no room`() throws {
        let descriptor = try VP8Descriptor(parsing: full.span)
        for capacity in 0..<VP8Descriptor.maximumLength {
            #expect(throws: WireError.noRoom) {
                try written(capacity: capacity) { try descriptor.write(into: &$0, at: 2) }
            }
        }
    }

    @Test(arguments: VideoCapture.all.filter { $0.codec == .vp8 })
    func `of captures are written as they were`(capture: VideoCapture) throws {
        for packet in try capture.packets() {
            let descriptor = try VP8Descriptor(parsing: packet.payload.span)
            let again = try written { try descriptor.write(into: &$0, at: 2) }
            let reread = try VP8Descriptor(parsing: (again + [0]).span)
            #expect(reread.pictureID == descriptor.pictureID)
            #expect(reread.tl0PictureIndex == descriptor.tl0PictureIndex)
            if descriptor.pictureIDBits == 15 {
                #expect(again == Array(packet.payload.prefix(descriptor.length)))
            }
        }
    }
}

@Suite struct VP9Descriptors {
    /// I, L, B, V: 15-bit picture id, layers T1 S1 with U and D, TL0PICIDX, and a structure of two layers
    /// with sizes and two pictures, the second of which has two references.
    private let full: [UInt8] = [
        0xAA, 0x92, 0x34, 0x33, 0x56,
        0x38, 0x01, 0x40, 0x00, 0xB4, 0x02, 0x80, 0x01, 0x68, 0x02, 0x00, 0x28, 0x01, 0x02, 0x00,
    ]

    @Test func `are parsed field by field`() throws {
        let descriptor = try VP9Descriptor(parsing: full.span)
        #expect(descriptor.length == full.count - 1)
        #expect(descriptor.pictureID == 0x1234)
        #expect(descriptor.temporalLayer == 1)
        #expect(descriptor.spatialLayer == 1)
        #expect(descriptor.isSwitchingPoint)
        #expect(descriptor.isInterLayerPredicted)
        #expect(!descriptor.isInterPredicted)
        #expect(descriptor.startsFrame)
        #expect(!descriptor.endsFrame)
        #expect(descriptor.tl0PictureIndex == 0x56)
        #expect(descriptor.spatialLayerCount == 2)
        #expect(descriptor.resolution == VideoResolution(width: 640, height: 360))
        #expect(
            try descriptor.spatialResolutions(in: full.span)
                == [VideoResolution(width: 320, height: 180), VideoResolution(width: 640, height: 360)])
        #expect(throws: WireError.truncated) {
            try descriptor.spatialResolutions(in: Array(full.prefix(13)).span)
        }
    }

    @Test func `need not tell sizes`() throws {
        // B, V: a structure of three layers without sizes; and no structure at all.
        for payload in [[0x0A, 0x40, 0x00], [0x08, 0x00]] as [[UInt8]] {
            let descriptor = try VP9Descriptor(parsing: payload.span)
            #expect(descriptor.spatialLayerCount == (payload.count > 2 ? 3 : nil))
            #expect(try descriptor.spatialResolutions(in: payload.span) == nil)
        }
    }

    @Test func `of Chromium tell the sizes of all layers with key frames`() throws {
        let capture = try #require(VideoCapture.all.first { $0.name == "chromium-vp9-l2t2" })
        var told = 0
        for packet in try capture.packets() {
            let descriptor = try VP9Descriptor(parsing: packet.payload.span)
            guard let sizes = try descriptor.spatialResolutions(in: packet.payload.span) else { continue }
            told += 1
            #expect(sizes.count == descriptor.spatialLayerCount)
            #expect(sizes.last == descriptor.resolution)
            #expect(zip(sizes, sizes.dropFirst()).allSatisfy { $0.height < $1.height })
        }
        #expect(told > 0)
    }

    @Test(arguments: 0..<20) func `are refused when cut short`(length: Int) {
        let prefix = Array(full.prefix(length))
        #expect(throws: WireError.truncated) { try VP9Descriptor(parsing: prefix.span) }
    }

    @Test func `in flexible mode name up to three references`() throws {
        let three: [UInt8] = [0xF0, 0x05, 0x00, 0x03, 0x05, 0x06, 0x00]
        let descriptor = try VP9Descriptor(parsing: three.span)
        #expect(descriptor.length == 6)
        #expect(descriptor.isFlexible)
        #expect(descriptor.tl0PictureIndex == nil)
        #expect(throws: WireError.invalid(.vp9References)) {
            try VP9Descriptor(parsing: [0xF0, 0x05, 0x00, 0x03, 0x05, 0x07, 0x00].span)
        }
    }

    @Test func `are written with other counters`() throws {
        let descriptor = try VP9Descriptor(parsing: full.span)
        let again = try written {
            try descriptor.write(
                pictureID: 0x7001, tl0PictureIndex: 0x99, copying: full.span, into: &$0, at: 2)
        }
        var expected = Array(full.prefix(descriptor.length))
        expected.replaceSubrange(1...4, with: [0xF0, 0x01, 0x33, 0x99])
        #expect(again == expected)
    }

    @Test(
        arguments: [([0xA0, 0x05, 0x20, 0x07, 0], 4), ([0x20, 0x20, 0x07, 0], 3), ([0x00, 0], 1)]
            as [([UInt8], Int)])
    func `get a picture id of 15 bits whatever they had`(bytes: [UInt8], length: Int) throws {
        let descriptor = try VP9Descriptor(parsing: bytes.span)
        #expect(descriptor.length == length)
        let again = try written {
            try descriptor.write(pictureID: 0x0102, tl0PictureIndex: 8, copying: bytes.span, into: &$0, at: 2)
        }
        let hasLayers = bytes[0] & 0x20 != 0
        #expect(again == [bytes[0] | 0x80, 0x81, 0x02] + (hasLayers ? [0x20, 8] : []))
    }

    @Test func `are not written where there is no room`() throws {
        let descriptor = try VP9Descriptor(parsing: full.span)
        for capacity in 0..<descriptor.length {
            #expect(throws: WireError.noRoom) {
                try written(capacity: capacity) {
                    try descriptor.write(
                        pictureID: 1, tl0PictureIndex: 1, copying: full.span, into: &$0, at: 2)
                }
            }
        }
    }

    @Test(arguments: VideoCapture.all.filter { $0.codec == .vp9 })
    func `of captures are written as they were`(capture: VideoCapture) throws {
        for packet in try capture.packets() {
            let descriptor = try VP9Descriptor(parsing: packet.payload.span)
            let pictureID = try #require(descriptor.pictureID)
            #expect(descriptor.pictureIDBits == 15)
            let again = try written {
                try descriptor.write(
                    pictureID: pictureID, tl0PictureIndex: descriptor.tl0PictureIndex,
                    copying: packet.payload.span, into: &$0, at: 2)
            }
            #expect(again == Array(packet.payload.prefix(descriptor.length)))
        }
    }

    /// Intra-only frames need nothing, but nothing can start there.
    @Test func `of frames that are intra-only are no key frames`() throws {
        // frame_marker 2, profile 0, show_existing 0, frame_type 1.
        let payload: [UInt8] = [0x8C, 0x01, 0x84, 0x00]
        let info = try VideoPayload.describe(.vp9, payload: payload.span, marker: true)
        #expect(!info.isKeyFrame && !info.startsKeyFrame && info.startsFrame)
    }
}
