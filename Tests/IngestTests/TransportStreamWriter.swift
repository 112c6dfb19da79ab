/// Writes a transport stream of one programme, for tests: H.264 on 0x100, sound on 0x101.
struct TransportStreamWriter {
    static let video: UInt16 = 0x100
    static let audio: UInt16 = 0x101
    private static let map: UInt16 = 0x20

    private var continuity: [UInt16: UInt8] = [:]

    init() {}

    /// The two tables.
    /// - Parameters:
    ///   - streams: type and identifier of each.
    ///   - descriptors: of each stream.
    mutating func tables(
        _ streams: [(type: UInt8, identifier: UInt16)], descriptors: [UInt8] = []
    ) -> [UInt8] {
        let association: [UInt8] = [0, 1, 0xC1, 0, 0, 0, 1, 0xE0, UInt8(Self.map)]
        var map: [UInt8] = [0, 1, 0xC1, 0, 0, 0xE1, 0, 0xF0, 0]
        for stream in streams {
            map += [
                stream.type, 0xE0 | UInt8(stream.identifier >> 8), UInt8(stream.identifier & 0xFF), 0xF0,
                UInt8(descriptors.count),
            ]
            map += descriptors
        }
        return packets(Self.section(0, association), of: 0) + packets(Self.section(2, map), of: Self.map)
    }

    private static func section(_ table: UInt8, _ body: [UInt8]) -> [UInt8] {
        // The first byte of the body is the high one of the identifier; behind it comes a CRC that nobody looks at.
        let length = body.count + 4
        return [0, table, 0xB0 | UInt8(length >> 8), UInt8(length & 0xFF)] + body + [0, 0, 0, 0]
    }

    /// A PES packet without a length, as pictures have it, or with one.
    /// - Parameters: `presentation` and `decoding` are in ticks of 90 kHz; nil for none.
    mutating func unit(
        _ payload: [UInt8], of identifier: UInt16, presentation: UInt64?, decoding: UInt64? = nil,
        hasLength: Bool = false
    ) -> [UInt8] {
        var times = presentation.map { Self.time($0, mark: decoding == nil ? 2 : 3) } ?? []
        if let decoding { times += Self.time(decoding, mark: 1) }
        let length = hasLength ? 3 + times.count + payload.count : 0
        let flags: UInt8 = presentation == nil ? 0 : decoding == nil ? 0x80 : 0xC0
        let header: [UInt8] = [
            0, 0, 1, identifier == Self.video ? 0xE0 : 0xC0, UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF),
            0x80, flags, UInt8(times.count),
        ]
        return packets(header + times + payload, of: identifier)
    }

    private static func time(_ time: UInt64, mark: UInt8) -> [UInt8] {
        func part(_ shift: UInt64, _ mask: UInt64) -> UInt8 { UInt8(time >> shift & mask) }
        return [
            mark << 4 | part(30, 7) << 1 | 1, part(22, 0xFF), part(15, 0x7F) << 1 | 1, part(7, 0xFF),
            part(0, 0x7F) << 1 | 1,
        ]
    }

    private mutating func packets(_ bytes: [UInt8], of identifier: UInt16) -> [UInt8] {
        var result: [UInt8] = []
        var rest = bytes[...]
        var isFirst = true
        repeat {
            let count = continuity[identifier, default: 0]
            continuity[identifier] = (count + 1) & 0x0F
            let head = UInt8(identifier >> 8) | (isFirst ? 0x40 : 0)
            let size = min(rest.count, 184)
            let stuffing = 184 - size
            result += [0x47, head, UInt8(identifier & 0xFF), (stuffing > 0 ? 0x30 : 0x10) | count]
            if stuffing > 0 { result.append(UInt8(stuffing - 1)) }
            if stuffing > 1 { result += [0] + [UInt8](repeating: 0xFF, count: stuffing - 2) }
            result += rest.prefix(size)
            rest = rest.dropFirst(size)
            isFirst = false
        } while !rest.isEmpty
        return result
    }
}
