/// Reads where the fragments of an MP4 file lie.
///
/// As our own muxer writes them: a `moov` without frames, then pairs of `moof` and `mdat`.
/// - Source: ISO/IEC 14496-12 §8.8 (fragments), §8.4.2 (mdhd).
enum MP4Outline {
    private struct Box {
        let type: [UInt8]
        let body: Int64
        let end: Int64
    }

    private static let boxLimit = 4 << 20

    static func read(_ size: Int64, _ source: (Int64, Int) -> [UInt8]) -> RecordingOutline {
        var outline = RecordingOutline()
        var scales: [UInt64: UInt64] = [:]
        var ends: [UInt64: UInt64] = [:]
        var pending: Box?
        var place: Int64 = 0
        while let box = box(at: place, size, source), box.end <= size {
            place = box.end
            switch String(decoding: box.type, as: UTF8.self) {
            case "moov": scales = timescales(contents(of: box, source))
            case "moof":
                pending = box
                continue
            case "mdat":
                if let moof = pending { note(contents(of: moof, source), &ends) }
                pending = nil
            default: break
            }
            outline.end = place
        }
        for (track, end) in ends {
            guard let scale = scales[track], scale > 0, end < 1 << 50 else { continue }
            outline.milliseconds = max(outline.milliseconds, Int64(end * 1_000 / scale))
        }
        return outline
    }

    private static func contents(of box: Box, _ source: (Int64, Int) -> [UInt8]) -> [UInt8] {
        box.end - box.body <= boxLimit ? source(box.body, Int(box.end - box.body)) : []
    }

    /// By track: ticks a second.
    private static func timescales(_ moov: [UInt8]) -> [UInt64: UInt64] {
        var scales: [UInt64: UInt64] = [:]
        for trak in children(moov, "trak") {
            guard let tkhd = children(trak, "tkhd").first, let mdia = children(trak, "mdia").first,
                let mdhd = children(mdia, "mdhd").first
            else { continue }
            let isLong = tkhd.first == 1
            scales[number(tkhd, isLong ? 20 : 12, 4)] = number(mdhd, mdhd.first == 1 ? 20 : 12, 4)
        }
        return scales
    }

    /// Where each track ends with this fragment.
    private static func note(_ moof: [UInt8], _ ends: inout [UInt64: UInt64]) {
        for traf in children(moof, "traf") {
            guard let tfhd = children(traf, "tfhd").first, let tfdt = children(traf, "tfdt").first else {
                continue
            }
            let track = number(tfhd, 4, 4)
            var end = number(tfdt, 4, tfdt.first == 1 ? 8 : 4)
            let usual = usualDuration(tfhd)
            for run in children(traf, "trun") { end &+= duration(of: run, usual: usual) }
            ends[track] = max(ends[track] ?? 0, end)
        }
    }

    private static func usualDuration(_ tfhd: [UInt8]) -> UInt64 {
        let flags = number(tfhd, 1, 3)
        guard flags & 0x08 != 0 else { return 0 }
        return number(tfhd, 8 + (flags & 0x01 != 0 ? 8 : 0) + (flags & 0x02 != 0 ? 4 : 0), 4)
    }

    private static func duration(of run: [UInt8], usual: UInt64) -> UInt64 {
        let flags = number(run, 1, 3)
        let count = min(number(run, 4, 4), 100_000)
        guard flags & 0x100 != 0 else { return count &* usual }
        let start = 8 + (flags & 0x01 != 0 ? 4 : 0) + (flags & 0x04 != 0 ? 4 : 0)
        let width = 4 * [0x100, 0x200, 0x400, 0x800].count { flags & $0 != 0 }
        return (0..<Int(count)).reduce(0) { $0 &+ number(run, start + $1 * width, 4) }
    }

    // MARK: Boxes

    /// Bodies of the boxes of that type.
    private static func children(_ bytes: [UInt8], _ type: String) -> [[UInt8]] {
        let source: (Int64, Int) -> [UInt8] = { offset, count in
            guard offset < Int64(bytes.count) else { return [] }
            return Array(bytes[Int(offset)..<min(Int(offset) + count, bytes.count)])
        }
        var found: [[UInt8]] = []
        var place: Int64 = 0
        while let box = box(at: place, Int64(bytes.count), source), box.end <= bytes.count {
            if box.type == Array(type.utf8) { found.append(Array(bytes[Int(box.body)..<Int(box.end)])) }
            place = box.end
        }
        return found
    }

    private static func box(at place: Int64, _ limit: Int64, _ source: (Int64, Int) -> [UInt8]) -> Box? {
        guard place < limit else { return nil }
        let bytes = source(place, 16)
        guard bytes.count >= 8 else { return nil }
        let short = number(bytes, 0, 4)
        let isLong = short == 1
        let size = isLong ? number(bytes, 8, 8) : short
        let header: UInt64 = isLong ? 16 : 8
        guard size >= header, size < 1 << 48 else { return nil }
        return Box(type: Array(bytes[4..<8]), body: place + Int64(header), end: place + Int64(size))
    }

    /// Of so many bytes; 0 beyond the end.
    private static func number(_ bytes: [UInt8], _ place: Int, _ count: Int) -> UInt64 {
        guard place >= 0, place + count <= bytes.count else { return 0 }
        return bytes[place..<(place + count)].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
