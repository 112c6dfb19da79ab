import Base
import Wire

/// The counters of pictures that a packet carries; nil where its codec or sender has none.
///
/// Decoders take a jump for a loss, so a slot that changes its source makes them continue.
/// - Source: RFC 7741 §4.2 and RFC 9628 §4.2 (PictureID, TL0PICIDX); AV1 RTP specification, appendix A.8.2
///   (`frame_number`).
package struct PictureNumbers: Equatable, Sendable {
    /// 15 bits.
    package var pictureID: UInt16?
    /// 8 bits; nil without temporal layers.
    package var tl0PictureIndex: UInt8?
    /// Of the dependency descriptor.
    package var frameNumber: UInt16?

    package init() {}

    /// What has to be added to these numbers so that they come right after `last`.
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

    /// Takes over what `newer` has, and keeps the rest: a source without picture ids does not end their count.
    mutating func update(with newer: PictureNumbers) {
        pictureID = newer.pictureID ?? pictureID
        tl0PictureIndex = newer.tl0PictureIndex ?? tl0PictureIndex
        frameNumber = newer.frameNumber ?? frameNumber
    }
}

/// What is added to the picture numbers of one source, wrapping in their width.
package struct PictureOffsets: Equatable, Sendable {
    /// Wraps with 15 bits.
    package var pictureID: UInt16 = 0
    /// Wraps with 8 bits.
    package var tl0PictureIndex: UInt8 = 0
    /// Wraps with 16 bits.
    package var frameNumber: UInt16 = 0

    package init() {}

    /// The same for what follows on pictures that were left out.
    func leavingOut(_ pictures: UInt16) -> PictureOffsets {
        var offsets = self
        offsets.pictureID = pictureID &- pictures
        return offsets
    }
}

/// The part of a video payload that a slot writes anew.
package enum PayloadDescriptor: Equatable, Sendable {
    /// Nothing is rewritten: the codec counts nothing in its payload.
    case none
    case vp8(VP8Descriptor)
    case vp9(VP9Descriptor)

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

    /// Writes the descriptor with other numbers and moves `offset` behind it.
    /// - Returns: how many bytes of the original payload it stands for.
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

    /// VP8's picture ids may be closed where pictures are left out; VP9's tell what a picture needs.
    var isVP8: Bool {
        guard case .vp8 = self else { return false }
        return true
    }

    /// Whether the sender's picture ids have 7 bits only, which are extended to 15.
    var hasShortPictureID: Bool {
        switch self {
        case .none: false
        case .vp8(let descriptor): descriptor.pictureID != nil && descriptor.pictureIDBits == 7
        case .vp9(let descriptor): descriptor.pictureID != nil && descriptor.pictureIDBits == 7
        }
    }
}

/// Extends picture ids of 7 bits to 15, by the one closest to the latest.
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
