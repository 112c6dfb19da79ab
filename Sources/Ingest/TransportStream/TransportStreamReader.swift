import Wire

/// Demultiplexes a transport stream: the PES packets of the first programme's video and audio.
///
/// The input is hostile: bytes outside packets are skipped, and incomplete PES packets are dropped and reported. Of
/// each kind of media the first stream counts.
/// - Source: ITU-T H.222.0 §2.4.3.2 (packets), §2.4.3.6 (PES), §2.4.4 (tables).
struct TransportStreamReader: Sendable {
    /// One element of the stream, in order.
    enum Element: Equatable, Sendable {
        /// The programme's streams; reported when they are known, and when they change.
        case programme(TransportStreamProgramme)
        case picture(PESPacket)
        case sound(PESPacket)
        /// A picture is missing or incomplete.
        case pictureLost
        /// Sound is missing: what follows does not continue the bytes before it.
        case soundLost
    }

    /// PIDs with a fixed meaning.
    private enum Identifier {
        static let programmes: UInt16 = 0
        static let null: UInt16 = 0x1FFF
    }

    static let packetLength = 188
    private static let syncByte: UInt8 = 0x47
    /// Longest PES packet of video, in bytes: enough for a key frame at the highest quality in live use.
    static let pictureLimit = 4 << 20
    /// Longest PES packet of audio, in bytes.
    static let soundLimit = 64 << 10
    /// Bytes outside packets after which the input is considered another format.
    private static let garbageLimit = 64 << 10

    /// The incomplete packet at the end of the input.
    private var rest: [UInt8] = []
    /// Bytes outside packets since the latest packet.
    private var garbage = 0
    private var programmeTable = SectionAssembler()
    private var mapTable = SectionAssembler()
    /// PID of the programme map; nil before the association table has arrived.
    private var mapIdentifier: UInt16?
    private var programme: TransportStreamProgramme?
    private var video = PESAssembler(limit: pictureLimit)
    private var audio = PESAssembler(limit: soundLimit)
    private var elements: [Element] = []

    /// Whether the input is another format; nothing more is read then.
    var isHopeless: Bool { garbage > Self.garbageLimit }

    /// Processes bytes; packets may be split across calls anywhere.
    mutating func read(_ bytes: Span<UInt8>) -> [Element] {
        defer { elements = [] }
        guard !isHopeless else { return [] }
        var offset = 0
        if !rest.isEmpty {
            let missing = min(Self.packetLength - rest.count, bytes.count)
            rest.append(bytes.extracting(first: missing))
            offset = missing
            guard rest.count == Self.packetLength else { return [] }
            let packet = rest
            rest = []
            take(packet.span)
        }
        while offset < bytes.count, !isHopeless {
            guard bytes[offset] == Self.syncByte else {
                garbage += 1
                offset += 1
                continue
            }
            guard bytes.count - offset >= Self.packetLength else {
                rest.append(bytes.extracting(droppingFirst: offset))
                break
            }
            take(bytes.extracting(offset..<(offset + Self.packetLength)))
            offset += Self.packetLength
        }
        return elements
    }

    // MARK: Packets

    /// Processes one packet, by its PID.
    private mutating func take(_ packet: Span<UInt8>) {
        garbage = 0
        guard let header = TransportPacketHeader(parsing: packet), !header.isDamaged else { return }
        let payload = packet.extracting(header.payload)
        switch header.identifier {
        case Identifier.null: return
        case Identifier.programmes:
            if let section = programmeTable.take(payload, header) { readProgrammes(section.span) }
        case mapIdentifier:
            if let section = mapTable.take(payload, header) { readMap(section.span) }
        case programme?.video?.identifier: takeVideo(payload, header)
        case programme?.audio?.identifier:
            for outcome in audio.take(payload, header) {
                switch outcome {
                case .whole(let packet): elements.append(.sound(packet))
                case .lost: elements.append(.soundLost)
                }
            }
        default: return
        }
    }

    private mutating func takeVideo(_ payload: Span<UInt8>, _ header: TransportPacketHeader) {
        for outcome in video.take(payload, header) {
            switch outcome {
            case .whole(let packet): elements.append(.picture(packet))
            case .lost: elements.append(.pictureLost)
            }
        }
    }

    // MARK: Tables

    private mutating func readProgrammes(_ section: Span<UInt8>) {
        guard let identifier = TransportStreamProgramme.firstMap(in: section), identifier != mapIdentifier
        else { return }
        mapIdentifier = identifier
        mapTable = SectionAssembler()
    }

    /// Applies a programme map; a stream that moved to another PID is reassembled from its beginning.
    private mutating func readMap(_ section: Span<UInt8>) {
        guard let found = TransportStreamProgramme(parsing: section), found != programme else { return }
        if found.video?.identifier != programme?.video?.identifier {
            // The picture under way never ends.
            if programme?.video != nil { elements.append(.pictureLost) }
            video = PESAssembler(limit: Self.pictureLimit)
        }
        if found.audio?.identifier != programme?.audio?.identifier {
            if programme?.audio != nil { elements.append(.soundLost) }
            audio = PESAssembler(limit: Self.soundLimit)
        }
        programme = found
        elements.append(.programme(found))
    }
}

/// The header and adaptation field of a transport packet.
struct TransportPacketHeader {
    let identifier: UInt16
    let startsUnit: Bool
    /// Whether the packet is scrambled, or marked as damaged in transmission.
    let isDamaged: Bool
    /// Counts the packets of one PID that have a payload, modulo 16.
    let continuity: UInt8
    /// Whether a jump of `continuity` is intended.
    let isDiscontinuous: Bool
    /// Whether decoders can begin with the PES packet that begins here.
    let isRandomAccess: Bool
    /// Range of the payload; empty if there is none.
    let payload: Range<Int>

    /// Parses a packet; nil unless it has 188 bytes, or if its adaptation field exceeds it.
    init?(parsing packet: Span<UInt8>) {
        guard packet.count == TransportStreamReader.packetLength else { return nil }
        identifier = UInt16(packet[1] & 0x1F) << 8 | UInt16(packet[2])
        startsUnit = packet[1] & 0x40 != 0
        isDamaged = packet[1] & 0x80 != 0 || packet[3] & 0xC0 != 0
        continuity = packet[3] & 0x0F
        var start = 4
        var flags: UInt8 = 0
        if packet[3] & 0x20 != 0 {
            let length = Int(packet[4])
            if length > 0 { flags = packet[5] }
            start = 5 + length
        }
        isDiscontinuous = flags & 0x80 != 0
        isRandomAccess = flags & 0x40 != 0
        guard start <= packet.count else { return nil }
        payload = packet[3] & 0x10 != 0 ? start..<packet.count : packet.count..<packet.count
    }
}

/// Reassembles the sections of one table, which are small but may span packets.
struct SectionAssembler: Sendable {
    /// Longest section, in bytes (§2.4.4.11).
    private static let limit = 1_024
    private var collected: [UInt8] = []
    private var isCollecting = false

    /// Appends the payload of a packet.
    /// - Returns: a complete section from its `table_id` on, without its CRC, which is not checked: SRT runs over UDP,
    ///   which has a checksum.
    mutating func take(_ payload: Span<UInt8>, _ header: TransportPacketHeader) -> [UInt8]? {
        var start = 0
        if header.startsUnit {
            guard payload.count > 0, Int(payload[0]) + 1 < payload.count else { return nil }
            // A pointer field precedes the section that begins in this packet; the end of an earlier section may
            // precede it.
            start = Int(payload[0]) + 1
            collected = []
            isCollecting = true
        }
        guard isCollecting else { return nil }
        for index in start..<payload.count where collected.count < Self.limit {
            collected.append(payload[index])
        }
        guard collected.count >= 3 else { return nil }
        let length = 3 + (Int(collected[1] & 0x0F) << 8 | Int(collected[2]))
        guard length <= Self.limit, length >= 12 else {
            isCollecting = false
            return nil
        }
        guard collected.count >= length else { return nil }
        isCollecting = false
        return Array(collected.prefix(length - 4))
    }
}
