import Base
import Wire

/// The picture counters in a packet; nil for those that its codec or sender does not use.
///
/// Decoders treat a jump as loss, so a slot that changes its source continues them.
/// - Source: RFC 7741 §4.2 and RFC 9628 §4.2 (PictureID, TL0PICIDX); AV1 RTP specification, appendix A.8.2
///   (`frame_number`).
package struct PictureNumbers: Equatable, Sendable {
    /// 15 bits.
    package var pictureID: UInt16?
    /// 8 bits; nil without temporal layers.
    package var tl0PictureIndex: UInt8?
    /// In the dependency descriptor, 16 bits.
    package var frameNumber: UInt16?

    package init() {}

    /// The offsets that make these numbers follow directly after `last`.
    func offsets(after last: PictureNumbers) -> PictureOffsets {
        var offsets = PictureOffsets()
        if let own = pictureID, let before = last.pictureID { offsets.pictureID = before &+ 1 &- own }
        if let own = tl0PictureIndex, let before = last.tl0PictureIndex {
            offsets.tl0PictureIndex = before &+ 1 &- own
        }
        if let own = frameNumber, let before = last.frameNumber { offsets.frameNumber = before &+ 1 &- own }
        return offsets
    }

    func adding(_ offsets: PictureOffsets) -> PictureNumbers {
        var sum = self
        sum.pictureID = pictureID.map { ($0 &+ offsets.pictureID) & 0x7FFF }
        sum.tl0PictureIndex = tl0PictureIndex.map { $0 &+ offsets.tl0PictureIndex }
        sum.frameNumber = frameNumber.map { $0 &+ offsets.frameNumber }
        return sum
    }

    /// Takes over the numbers in `newer` and keeps the rest, because a source without picture IDs does not end their
    /// count.
    mutating func update(with newer: PictureNumbers) {
        pictureID = newer.pictureID ?? pictureID
        tl0PictureIndex = newer.tl0PictureIndex ?? tl0PictureIndex
        frameNumber = newer.frameNumber ?? frameNumber
    }
}

/// Offsets to the picture numbers of one source, which wrap in their width.
package struct PictureOffsets: Equatable, Sendable {
    /// Wraps with 15 bits.
    package var pictureID: UInt16 = 0
    /// Wraps with 8 bits.
    package var tl0PictureIndex: UInt8 = 0
    /// Wraps with 16 bits.
    package var frameNumber: UInt16 = 0

    package init() {}

    /// The offsets after this many dropped pictures.
    func leavingOut(_ pictures: UInt16) -> PictureOffsets {
        var offsets = self
        offsets.pictureID = pictureID &- pictures
        return offsets
    }
}

/// The part of a video payload that slots rewrite.
package enum PayloadDescriptor: Equatable, Sendable {
    /// Nothing is rewritten, because the codec has no counters in its payload.
    case none
    case vp8(VP8Descriptor)
    case vp9(VP9Descriptor)

    /// Parses the descriptor at the beginning of a payload.
    package init(_ codec: VideoCodec, parsing payload: Span<UInt8>) throws(WireError) {
        switch codec {
        case .vp8: self = .vp8(try VP8Descriptor(parsing: payload))
        case .vp9: self = .vp9(try VP9Descriptor(parsing: payload))
        case .h264, .av1, .hevc: self = .none
        }
    }

    var numbers: PictureNumbers {
        var numbers = PictureNumbers()
        switch self {
        case .none: break
        case .vp8(let descriptor):
            numbers.pictureID = descriptor.pictureID
            numbers.tl0PictureIndex = descriptor.tl0PictureIndex
        case .vp9(let descriptor):
            numbers.pictureID = descriptor.pictureID
            numbers.tl0PictureIndex = descriptor.tl0PictureIndex
        }
        return numbers
    }

    /// Writes the descriptor with other numbers, and moves `offset` behind it.
    /// - Returns: number of bytes of the original payload that it replaces.
    func write(
        _ numbers: PictureNumbers, copying payload: Span<UInt8>, into buffer: inout MutableSpan<UInt8>,
        at offset: inout Int
    ) throws(WireError) -> Int {
        switch self {
        case .none:
            return 0
        case .vp8(var descriptor):
            descriptor.pictureID = numbers.pictureID
            descriptor.tl0PictureIndex = numbers.tl0PictureIndex
            offset += try descriptor.write(into: &buffer, at: offset)
            return descriptor.length
        case .vp9(let descriptor):
            guard let pictureID = numbers.pictureID else { return 0 }
            offset += try descriptor.write(
                pictureID: pictureID, tl0PictureIndex: numbers.tl0PictureIndex, copying: payload,
                into: &buffer,
                at: offset)
            return descriptor.length
        }
    }

    /// Whether it is VP8's: only VP8's picture IDs may be closed where pictures are dropped.
    ///
    /// VP9's tell which pictures a picture depends on.
    var isVP8: Bool {
        guard case .vp8 = self else { return false }
        return true
    }

    /// Whether the sender's picture IDs have only 7 bits; they are extended to 15.
    var hasShortPictureID: Bool {
        switch self {
        case .none: false
        case .vp8(let descriptor): descriptor.pictureID != nil && descriptor.pictureIDBits == 7
        case .vp9(let descriptor): descriptor.pictureID != nil && descriptor.pictureIDBits == 7
        }
    }
}

/// Extends 7-bit picture IDs to 15 bits: chooses the value closest to the latest one.
struct PictureIDExtender {
    private var latest: UInt16?

    mutating func extend(_ short: UInt16) -> UInt16 {
        guard let latest else {
            self.latest = short & 0x7F
            return short & 0x7F
        }
        let step = Int8(truncatingIfNeeded: (Int(short) - Int(latest)) << 1) >> 1
        let extended = UInt16(truncatingIfNeeded: Int(latest) + Int(step)) & 0x7FFF
        if step > 0 { self.latest = extended }
        return extended
    }
}
