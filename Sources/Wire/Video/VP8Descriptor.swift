/// The payload descriptor before the VP8 data of each packet.
///
/// A rewriter parses it, changes `pictureID` and `tl0PictureIndex`, and writes it in place of the first `length`
/// bytes of the payload.
/// - Source: RFC 7741 §4.2.
package struct VP8Descriptor: Equatable, Sendable {
    /// Length of a descriptor with all fields, in bytes.
    package static let maximumLength = 6

    /// Length of the parsed descriptor in bytes.
    package private(set) var length: Int
    /// N: no later frame needs this one.
    package var isNonReference: Bool
    /// S: a partition begins with this packet.
    package var startsPartition: Bool
    /// 3 bits.
    package var partitionIndex: UInt8
    /// Counts pictures; always written with 15 bits.
    package var pictureID: UInt16?
    /// 7 or 15: the width at which the parsed picture id wraps.
    package private(set) var pictureIDBits: Int
    /// Counts pictures of temporal layer 0; present only with temporal layers.
    package var tl0PictureIndex: UInt8?
    /// 2 bits.
    package var temporalLayer: UInt8?
    /// Y: depends on temporal layer 0 only.
    package var isLayerSync: Bool
    /// Counts key frames, 5 bits; must remain as the sender wrote it.
    package var keyIndex: UInt8?

    /// - Throws: `.truncated` if the descriptor is longer than the payload.
    package init(parsing payload: Span<UInt8>) throws(WireError) {
        let first = try payload.uint8(at: 0)
        isNonReference = first & 0x20 != 0
        startsPartition = first & 0x10 != 0
        partitionIndex = first & 0x07
        pictureIDBits = 15
        isLayerSync = false
        length = 1
        if first & 0x80 != 0 { try parseOptionalFields(payload) }
        try payload.require(length &+ 1)
    }

    private mutating func parseOptionalFields(_ payload: Span<UInt8>) throws(WireError) {
        let present = try payload.uint8(at: 1)
        length = 2
        if present & 0x80 != 0 {
            let byte = try payload.uint8(at: length)
            if byte & 0x80 == 0 {
                pictureID = UInt16(byte)
                pictureIDBits = 7
                length &+= 1
            } else {
                pictureID = try payload.uint16(at: length) & 0x7FFF
                length &+= 2
            }
        }
        if present & 0x40 != 0 {
            tl0PictureIndex = try payload.uint8(at: length)
            length &+= 1
        }
        if present & 0x30 != 0 {
            let byte = try payload.uint8(at: length)
            if present & 0x20 != 0 {
                temporalLayer = byte >> 6
                isLayerSync = byte & 0x20 != 0
            }
            if present & 0x10 != 0 { keyIndex = byte & 0x1F }
            length &+= 1
        }
    }

    /// Whether a frame begins with this packet.
    package var startsFrame: Bool { startsPartition && partitionIndex == 0 }

    /// Writes the descriptor, at most `maximumLength` bytes.
    /// - Returns: how many bytes were written; they replace the first `length` bytes of the payload.
    package func write(into packet: inout MutableSpan<UInt8>, at offset: Int) throws(WireError) -> Int {
        var present: UInt8 = 0
        if pictureID != nil { present |= 0x80 }
        if tl0PictureIndex != nil { present |= 0x40 }
        if temporalLayer != nil { present |= 0x20 }
        if keyIndex != nil { present |= 0x10 }

        var first = partitionIndex & 0x07
        if isNonReference { first |= 0x20 }
        if startsPartition { first |= 0x10 }
        guard present != 0 else {
            try packet.store(first, at: offset)
            return 1
        }
        try packet.store(first | 0x80, at: offset)
        try packet.store(present, at: offset &+ 1)
        var written = 2
        if let pictureID {
            try packet.store(pictureID | 0x8000, at: offset &+ written)
            written &+= 2
        }
        if let tl0PictureIndex {
            try packet.store(tl0PictureIndex, at: offset &+ written)
            written &+= 1
        }
        if present & 0x30 != 0 {
            let layer = (temporalLayer ?? 0) << 6 | (isLayerSync ? 0x20 : 0)
            try packet.store(layer | (keyIndex ?? 0) & 0x1F, at: offset &+ written)
            written &+= 1
        }
        return written
    }

    func describe(_ payload: Span<UInt8>, marker: Bool) throws(WireError) -> VideoPacketInfo {
        var info = VideoPacketInfo()
        info.startsFrame = startsFrame
        info.endsFrame = marker
        info.temporalLayer = temporalLayer ?? 0
        info.isTemporalSwitchingPoint = isLayerSync
        guard startsFrame else { return info }
        // The frame tag's lowest bit is clear in key frames (RFC 7741 §4.3, RFC 6386 §9.1).
        info.isKeyFrame = try payload.uint8(at: length) & 0x01 == 0
        info.startsKeyFrame = info.isKeyFrame
        if info.isKeyFrame { info.resolution = resolution(payload) }
        return info
    }

    /// The size in a key frame's header, if that is complete: 14 bits each, after tag and start code of 3 bytes
    /// each.
    /// - Source: RFC 6386 §9.1.
    private func resolution(_ payload: Span<UInt8>) -> VideoResolution? {
        guard payload.count >= length &+ 10,
            (try? payload.uint24(at: length &+ 3)) == 0x9D012A,
            let width = try? payload.uint16(at: length &+ 6),
            let height = try? payload.uint16(at: length &+ 8)
        else { return nil }
        return VideoResolution(
            width: Int(width.byteSwapped & 0x3FFF), height: Int(height.byteSwapped & 0x3FFF))
    }
}
