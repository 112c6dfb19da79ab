import Wire

/// The elementary streams of a programme: the first video and the first audio stream.
struct TransportStreamProgramme: Equatable, Sendable {
    /// A codec that is accepted, or the name of another for the refusal.
    enum Codec: Equatable, Sendable, CustomStringConvertible {
        case h264
        case aac
        /// Any other codec, by its common name.
        case other(String)

        var description: String {
            switch self {
            case .h264: "H.264"
            case .aac: "AAC"
            case .other(let name): name
            }
        }
    }

    /// One elementary stream.
    struct Stream: Equatable, Sendable {
        /// PID of its packets.
        let identifier: UInt16
        let codec: Codec
    }

    private(set) var video: Stream?
    private(set) var audio: Stream?

    /// Values of `table_id`.
    private enum Table {
        static let association: UInt8 = 0
        static let map: UInt8 = 2
    }

    /// Finds the map of the first programme.
    /// - Returns: its PID; nil if the section is not an association table.
    static func firstMap(in section: Span<UInt8>) -> UInt16? {
        guard section.count >= 8, section[0] == Table.association else { return nil }
        var offset = 8
        while offset + 4 <= section.count {
            let number = UInt16(section[offset]) << 8 | UInt16(section[offset + 1])
            let identifier = UInt16(section[offset + 2] & 0x1F) << 8 | UInt16(section[offset + 3])
            // Number 0 is the network information table.
            if number != 0 { return identifier }
            offset += 4
        }
        return nil
    }

    /// Parses a programme map; nil if the section is another table.
    /// - Parameter section: from its `table_id` on, without its CRC.
    init?(parsing section: Span<UInt8>) {
        guard section.count >= 12, section[0] == Table.map else { return nil }
        var offset = 12 + (Int(section[10] & 0x0F) << 8 | Int(section[11]))
        while offset + 5 <= section.count {
            let identifier = UInt16(section[offset + 1] & 0x1F) << 8 | UInt16(section[offset + 2])
            let length = Int(section[offset + 3] & 0x0F) << 8 | Int(section[offset + 4])
            let descriptors = min(offset + 5, section.count)..<min(offset + 5 + length, section.count)
            note(section[offset], identifier, section.extracting(descriptors))
            offset += 5 + length
        }
    }

    /// Notes an elementary stream by its `stream_type`; later streams of the same kind are ignored.
    private mutating func note(
        _ type: UInt8, _ identifier: UInt16, _ descriptors: Span<UInt8>
    ) {
        switch type {
        case 0x1B: video = video ?? Stream(identifier: identifier, codec: .h264)
        case 0x01, 0x02: video = video ?? Stream(identifier: identifier, codec: .other("MPEG-2 video"))
        case 0x10: video = video ?? Stream(identifier: identifier, codec: .other("MPEG-4 video"))
        case 0x24: video = video ?? Stream(identifier: identifier, codec: .other("HEVC"))
        case 0x33: video = video ?? Stream(identifier: identifier, codec: .other("VVC"))
        case 0x0F: audio = audio ?? Stream(identifier: identifier, codec: .aac)
        case 0x03, 0x04: audio = audio ?? Stream(identifier: identifier, codec: .other("MPEG audio"))
        case 0x11: audio = audio ?? Stream(identifier: identifier, codec: .other("AAC in LATM"))
        case 0x81: audio = audio ?? Stream(identifier: identifier, codec: .other("AC-3"))
        case 0x06:
            guard let name = Self.registration(in: descriptors) else { return }
            if name == 0x4F70_7573 {
                audio = audio ?? Stream(identifier: identifier, codec: .other("Opus in MPEG-TS"))
            } else if name == 0x4156_3031 {
                video = video ?? Stream(identifier: identifier, codec: .other("AV1 in MPEG-TS"))
            }
        default: break
        }
    }

    /// The registered format identifier of private data (§2.6.8); nil without one.
    private static func registration(in descriptors: Span<UInt8>) -> UInt32? {
        var offset = 0
        while offset + 2 <= descriptors.count {
            if descriptors[offset] == 5 { return try? descriptors.uint32(at: offset + 2) }
            offset += 2 + Int(descriptors[offset + 1])
        }
        return nil
    }
}
