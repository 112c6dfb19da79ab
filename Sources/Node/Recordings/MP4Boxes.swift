/// Boxes of an MP4 file, found with checked reads.
/// - Source: ISO/IEC 14496-12 §4.2 (object structure).
package enum MP4Boxes {
    package struct Box {
        let type: String
        package let start: Int64
        let body: Int64
        let end: Int64
    }

    /// Boxes that are looked into are not longer.
    static let limit: Int64 = 4 << 20

    /// What is in a box; of a longer one, its beginning.
    static func contents(of box: Box, _ source: (Int64, Int) -> [UInt8]) -> [UInt8] {
        source(box.body, Int(min(box.end - box.body, limit)))
    }

    /// Bodies of the boxes of that type.
    static func children(_ bytes: [UInt8], _ type: String) -> [[UInt8]] {
        let source: (Int64, Int) -> [UInt8] = { offset, count in
            guard offset < Int64(bytes.count) else { return [] }
            return Array(bytes[Int(offset)..<min(Int(offset) + count, bytes.count)])
        }
        var found: [[UInt8]] = []
        var place: Int64 = 0
        while let box = box(at: place, Int64(bytes.count), source), box.end <= bytes.count {
            if box.type == type { found.append(Array(bytes[Int(box.body)..<Int(box.end)])) }
            place = box.end
        }
        return found
    }

    static func box(at place: Int64, _ limit: Int64, _ source: (Int64, Int) -> [UInt8]) -> Box? {
        guard place < limit else { return nil }
        let bytes = source(place, 16)
        guard bytes.count >= 8 else { return nil }
        let short = number(bytes, 0, 4)
        let isLong = short == 1
        let size = isLong ? number(bytes, 8, 8) : short
        let header: UInt64 = isLong ? 16 : 8
        guard size >= header, size < 1 << 48 else { return nil }
        return Box(
            type: String(decoding: bytes[4..<8], as: UTF8.self), start: place, body: place + Int64(header),
            end: place + Int64(size))
    }

    /// Of so many bytes; 0 beyond the end.
    static func number(_ bytes: [UInt8], _ place: Int, _ count: Int) -> UInt64 {
        guard place >= 0, place + count <= bytes.count else { return 0 }
        return bytes[place..<(place + count)].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
