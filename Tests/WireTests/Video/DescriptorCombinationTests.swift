import TestSupport
import Testing
import Wire

/// What `write` puts at the beginning of a buffer.
private func written(_ write: (inout MutableSpan<UInt8>) throws -> Int) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0xEE, count: 64)
    var span = buffer.mutableSpan
    let length = try write(&span)
    return Array(buffer.prefix(length))
}

/// Every combination of the fields that a descriptor may have.
@Suite struct `A payload descriptor` {
    /// A descriptor of VP9 by its first byte, with random fields.
    /// - Source: RFC 9628 §4.2.
    private struct VP9 {
        var bytes: [UInt8]
        var pictureID: UInt16?
        var layers: (temporal: UInt8, spatial: UInt8) = (0, 0)
        var tl0PictureIndex: UInt8?
        /// The size of each spatial layer, if there is a structure that tells them.
        var sizes: [VideoResolution]?

        init(_ first: UInt8, hasLongID: Bool, using random: inout SeededGenerator) {
            bytes = [first]
            func number(_ range: ClosedRange<UInt8>) -> UInt8 { .random(in: range, using: &random) }
            if first & 0x80 != 0 {
                let (high, low) = (number(0...127), number(0...255))
                pictureID = hasLongID ? UInt16(high) << 8 | UInt16(low) : UInt16(high)
                bytes += hasLongID ? [high | 0x80, low] : [high]
            }
            if first & 0x20 != 0 {
                let byte = number(0...255)
                layers = (byte >> 5, byte >> 1 & 7)
                bytes.append(byte)
                if first & 0x10 == 0 {
                    let index = number(0...255)
                    tl0PictureIndex = index
                    bytes.append(index)
                }
            }
            if first & 0x50 == 0x50 {
                for _ in 0..<number(0...2) { bytes.append(number(0...127) << 1 | 1) }
                bytes.append(number(0...127) << 1)
            }
            guard first & 0x02 != 0 else { return }
            let (count, flags) = (number(0...7) + 1, number(0...3))
            bytes.append((count - 1) << 5 | flags << 3)
            if flags & 2 != 0 {
                var sizes: [VideoResolution] = []
                for _ in 0..<count {
                    let size = [number(0...255), number(0...255), number(0...255), number(0...255)]
                    bytes += size
                    let (width, height) = (Int(size[0]) << 8 | Int(size[1]), Int(size[2]) << 8 | Int(size[3]))
                    sizes.append(VideoResolution(width: width, height: height))
                }
                self.sizes = sizes
            }
            guard flags & 1 != 0 else { return }
            let pictures = number(0...3)
            bytes.append(pictures)
            for _ in 0..<pictures {
                let references = number(0...3)
                bytes.append(references << 2)
                for _ in 0..<references { bytes.append(number(0...255)) }
            }
        }
    }

    @Test(arguments: UInt8.min...UInt8.max)
    func `of VP9 is read, and written with other counters, whatever fields it has`(first: UInt8) throws {
        var random = SeededGenerator(seed: UInt64(first))
        for round in 0..<8 {
            let made = VP9(first, hasLongID: round % 2 == 0, using: &random)
            let payload = made.bytes + [0xAA, 0xBB]
            let descriptor = try VP9Descriptor(parsing: payload.span)
            #expect(descriptor.length == made.bytes.count)
            #expect(descriptor.pictureID == made.pictureID)
            #expect((descriptor.temporalLayer, descriptor.spatialLayer) == made.layers)
            #expect(descriptor.tl0PictureIndex == made.tl0PictureIndex)
            #expect(try descriptor.spatialResolutions(in: payload.span) == made.sizes)
            #expect(descriptor.resolution == made.sizes?.last)

            let again = try written { span in
                try descriptor.write(
                    pictureID: 0x1234, tl0PictureIndex: 0x56, copying: payload.span, into: &span, at: 0)
            }
            let longer = again + [0xAA]
            let reread = try VP9Descriptor(parsing: longer.span)
            #expect(reread.length == again.count)
            #expect(reread.pictureID == 0x1234)
            let index: UInt8? = made.tl0PictureIndex == nil ? nil : 0x56
            #expect(reread.tl0PictureIndex == index)
            #expect((reread.temporalLayer, reread.spatialLayer) == made.layers)
            #expect(try reread.spatialResolutions(in: longer.span) == made.sizes)
            for length in 0...made.bytes.count {
                let part = Array(payload.prefix(length))
                #expect(throws: WireError.truncated) { try VP9Descriptor(parsing: part.span) }
            }
        }
    }

    /// - Source: RFC 7741 §4.2.
    @Test(arguments: UInt8.min...UInt8.max)
    func `of VP8 is read and written whatever fields it has`(present: UInt8) throws {
        let fields = present & 0xF0
        for (hasLongID, first) in [(true, 0xB3), (false, 0x80)] as [(Bool, UInt8)] {
            var bytes = [first, present]
            if fields & 0x80 != 0 { bytes += hasLongID ? [0x92, 0x34] : [0x12] }
            if fields & 0x40 != 0 { bytes.append(0x56) }
            if fields & 0x30 != 0 { bytes.append(0xB1) }
            let descriptor = try VP8Descriptor(parsing: (bytes + [0xAA]).span)
            #expect(descriptor.length == bytes.count)
            let id: UInt16 = hasLongID ? 0x1234 : 0x12
            let pictureID: UInt16? = fields & 0x80 != 0 ? id : nil
            let tl0PictureIndex: UInt8? = fields & 0x40 != 0 ? 0x56 : nil
            let temporalLayer: UInt8? = fields & 0x20 != 0 ? 2 : nil
            let keyIndex: UInt8? = fields & 0x10 != 0 ? 17 : nil
            #expect(descriptor.pictureID == pictureID)
            #expect(descriptor.tl0PictureIndex == tl0PictureIndex)
            #expect(descriptor.temporalLayer == temporalLayer)
            #expect(descriptor.keyIndex == keyIndex)
            let again = try written { span in try descriptor.write(into: &span, at: 0) }
            let reread = try VP8Descriptor(parsing: (again + [0xAA]).span)
            #expect(reread.length == again.count)
            #expect(reread.pictureID == descriptor.pictureID)
            #expect(reread.tl0PictureIndex == descriptor.tl0PictureIndex)
            #expect(reread.temporalLayer == descriptor.temporalLayer)
            #expect(reread.isLayerSync == descriptor.isLayerSync)
            #expect(reread.keyIndex == descriptor.keyIndex)
            #expect(reread.partitionIndex == descriptor.partitionIndex)
            #expect(reread.isNonReference == descriptor.isNonReference)
            for length in 0...bytes.count {
                let part = Array(bytes.prefix(length))
                #expect(throws: WireError.truncated) { try VP8Descriptor(parsing: part.span) }
            }
        }
    }
}
