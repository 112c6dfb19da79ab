/// The configuration of an AV1 stream, sent before its first picture.
/// - Source: AV1 Codec ISO Media File Format Binding §2.3.3 (AV1CodecConfigurationRecord).
package struct AV1Configuration: Equatable, Sendable {
    /// `seq_profile`: 0 is main, with 4:2:0 of 8 or 10 bits.
    package let profile: UInt8
    /// Bits per sample: 8, 10 or 12.
    package let bitDepth: Int
    /// Whether there is no chroma.
    package let isMonochrome: Bool
    /// A sequence header OBU without its size field; nil if the record contains none.
    package let sequenceHeader: [UInt8]?

    /// Limit for the OBUs of the record, in bytes.
    private static let unitLimit = 4_096

    /// Parses a record of version 1.
    /// - Throws: `.truncated`, or `.invalid` for another version, a reserved profile, or malformed OBUs.
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

    /// Size of the pictures; nil if the record has no valid sequence header.
    package var resolution: VideoResolution? {
        guard let sequenceHeader, let first = sequenceHeader.first else { return nil }
        let start = first & 0x04 != 0 ? 2 : 1
        return try? AV1SequenceHeader.resolution(sequenceHeader.span, start..<sequenceHeader.count)
    }
}

/// The OBUs of a temporal unit of AV1, in the form used in files.
/// - Source: AV1 bitstream specification §5.3 (unit and header), §6.2.2 (types), §5.9.2 (frame header).
package struct AV1Units: Equatable, Sendable {
    /// One OBU.
    package struct Unit: Equatable, Sendable {
        /// The kinds of OBU that matter here.
        package enum Kind: Sendable {
            case sequenceHeader
            /// A frame header, alone or together with the frame.
            case frame
            case other
        }

        /// From `obu_type`.
        package let kind: Kind
        /// Whether it is a frame that needs no earlier ones.
        package let isKeyFrame: Bool
        /// Without its size field, because transports have their own; at least two bytes.
        package let bytes: [UInt8]
    }

    /// The OBUs without those that transports omit: delimiters, padding, tile lists, and empty ones.
    package let all: [Unit]

    /// Most OBUs in a temporal unit; large pictures have a few dozen tiles.
    package static let limit = 1_024

    private enum UnitType {
        static let sequenceHeader: UInt8 = 1
        static let temporalDelimiter: UInt8 = 2
        static let frameHeader: UInt8 = 3
        static let frame: UInt8 = 6
        static let tileList: UInt8 = 8
        static let padding: UInt8 = 15
    }

    /// Splits a temporal unit.
    /// - Throws: `.truncated`, or `.invalid` for a forbidden header bit or too many OBUs.
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

    /// Whether a decoder that has the sequence header can start here.
    package var isKeyFrame: Bool { all.first { $0.kind == .frame }?.isKeyFrame ?? false }
}

extension WireError.Field {
    /// A record version other than 1.
    package static var av1Version: Self { .init("av1.version") }
    /// A reserved profile, or a bit depth that does not exist.
    package static var av1Profile: Self { .init("av1.profile") }
    /// A malformed OBU, or more OBUs than a picture has.
    package static var av1Units: Self { .init("av1.units") }
}
