/// What is told of a stream of AV1 before its first picture.
/// - Source: AV1 Codec ISO Media File Format Binding §2.3.3 (AV1CodecConfigurationRecord).
package struct AV1Configuration: Equatable, Sendable {
    /// `seq_profile`: 0 is main, with 4:2:0 of 8 or 10 bits.
    package let profile: UInt8
    /// Of a sample: 8, 10 or 12.
    package let bitDepth: Int
    /// Without colours.
    package let isMonochrome: Bool
    /// A sequence header without its size; nil where the record holds none.
    package let sequenceHeader: [UInt8]?

    /// In bytes, of all units of the record.
    private static let unitLimit = 4_096

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        try bytes.require(4)
        guard try bytes.uint8(at: 0) == 0x81 else { throw .invalid(.av1Version) }
        profile = try bytes.uint8(at: 1) >> 5
        let flags = try bytes.uint8(at: 2)
        bitDepth = flags & 0x40 == 0 ? 8 : flags & 0x20 == 0 ? 10 : 12
        isMonochrome = flags & 0x10 != 0
        guard profile <= 2, flags & 0x60 != 0x20 else { throw .invalid(.av1Profile) }
        guard bytes.count <= 4 + Self.unitLimit else { throw .invalid(.av1Units) }
        let units = try AV1Units(parsing: bytes.extracting(4..<bytes.count))
        sequenceHeader = units.all.first { $0.kind == .sequenceHeader }?.bytes
    }

    /// Of the pictures; nil where that is not told.
    package var resolution: VideoResolution? {
        guard let sequenceHeader, let first = sequenceHeader.first else { return nil }
        let start = first & 0x04 != 0 ? 2 : 1
        return try? AV1SequenceHeader.resolution(sequenceHeader.span, start..<sequenceHeader.count)
    }
}

/// The units of one picture of AV1, or of several that are shown at once, as files have them.
/// - Source: AV1 bitstream specification §5.3 (unit and header), §6.2.2 (types), §5.9.2 (frame header).
package struct AV1Units: Equatable, Sendable {
    package struct Unit: Equatable, Sendable {
        package enum Kind: Sendable {
            case sequenceHeader
            /// The header of a frame, alone or with the frame.
            case frame
            case other
        }

        package let kind: Kind
        /// Whether a frame is shown without anything from before it.
        package let isKeyFrame: Bool
        /// Without its size, which transports say elsewhere; of two bytes or more.
        package let bytes: [UInt8]
    }

    /// Without those that transports leave out: delimiters, padding, lists of tiles, and empty ones.
    package let all: [Unit]

    /// Units of one picture; large ones have some tens of tiles.
    package static let limit = 1_024

    private enum UnitType {
        static let sequenceHeader: UInt8 = 1
        static let temporalDelimiter: UInt8 = 2
        static let frameHeader: UInt8 = 3
        static let frame: UInt8 = 6
        static let tileList: UInt8 = 8
        static let padding: UInt8 = 15
    }

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        var units: [Unit] = []
        var offset = 0
        while offset < bytes.count {
            let header = try bytes.uint8(at: offset)
            guard header & 0x80 == 0 else { throw .invalid(.av1Units) }
            let body = offset + (header & 0x04 != 0 ? 2 : 1)
            try bytes.require(body)
            var payload = body..<bytes.count
            if header & 0x02 != 0 {
                let size = try LEB128(bytes, at: body)
                guard size.value <= bytes.count - size.end else { throw .truncated }
                payload = size.end..<(size.end + size.value)
            }
            let head = [header & ~0x02] + (try bytes.bytes((offset + 1)..<body))
            offset = payload.upperBound
            let type = header >> 3 & 0x0F
            let isLeftOut = [UnitType.temporalDelimiter, UnitType.tileList, UnitType.padding].contains(type)
            guard !isLeftOut, !payload.isEmpty else { continue }
            guard units.count < Self.limit else { throw .invalid(.av1Units) }
            let kind: Unit.Kind =
                switch type {
                case UnitType.sequenceHeader: .sequenceHeader
                case UnitType.frame, UnitType.frameHeader: .frame
                default: .other
                }
            // show_existing_frame clear, frame_type KEY_FRAME.
            let startsWithKey = try bytes.uint8(at: payload.lowerBound) & 0xE0 == 0
            let isKeyFrame = kind == .frame && startsWithKey
            units.append(Unit(kind: kind, isKeyFrame: isKeyFrame, bytes: head + (try bytes.bytes(payload))))
        }
        all = units
    }

    /// Whether a decoder can begin with it, given a sequence header.
    package var isKeyFrame: Bool { all.first { $0.kind == .frame }?.isKeyFrame ?? false }
}

extension WireError.Field {
    /// Another record than that of version 1.
    package static var av1Version: Self { .init("av1.version") }
    /// A profile that is reserved, or a depth that no profile has.
    package static var av1Profile: Self { .init("av1.profile") }
    /// A unit that is forbidden, or more of them than a picture has.
    package static var av1Units: Self { .init("av1.units") }
}
