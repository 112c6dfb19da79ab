/// Reads where the fragments of an MP4 file lie.
///
/// As our own muxer writes them: a `moov` without frames, then pairs of `moof` and `mdat`.
/// - Source: ISO/IEC 14496-12 §8.8 (fragments), §8.4.2 (mdhd).
package enum MP4Outline {
    package static func read(_ size: Int64, _ source: (Int64, Int) -> [UInt8]) -> RecordingOutline {
        var outline = RecordingOutline()
        var scales: [UInt64: UInt64] = [:]
        var ends: [UInt64: UInt64] = [:]
        var pending: MP4Boxes.Box?
        var place: Int64 = 0
        while let box = MP4Boxes.box(at: place, size, source), box.end <= size {
            place = box.end
            switch box.type {
            case "moov":
                let moov = MP4Boxes.contents(of: box, source)
                scales = timescales(moov)
                outline.milliseconds = max(outline.milliseconds, wholeDuration(moov))
            case "moof":
                pending = box
                continue
            case "mdat":
                if let moof = pending { note(MP4Boxes.contents(of: moof, source), &ends) }
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

    /// In milliseconds, of a file that needs no fragments any more.
    private static func wholeDuration(_ moov: [UInt8]) -> Int64 {
        guard let mvhd = MP4Boxes.children(moov, "mvhd").first else { return 0 }
        let isLong = mvhd.first == 1
        let scale = MP4Boxes.number(mvhd, isLong ? 20 : 12, 4)
        let duration = MP4Boxes.number(mvhd, isLong ? 24 : 16, isLong ? 8 : 4)
        return scale > 0 && duration < 1 << 50 ? Int64(duration * 1_000 / scale) : 0
    }

    /// By track: ticks a second.
    private static func timescales(_ moov: [UInt8]) -> [UInt64: UInt64] {
        var scales: [UInt64: UInt64] = [:]
        for trak in MP4Boxes.children(moov, "trak") {
            guard let tkhd = MP4Boxes.children(trak, "tkhd").first,
                let mdia = MP4Boxes.children(trak, "mdia").first,
                let mdhd = MP4Boxes.children(mdia, "mdhd").first
            else { continue }
            let isLong = tkhd.first == 1
            scales[MP4Boxes.number(tkhd, isLong ? 20 : 12, 4)] = MP4Boxes.number(
                mdhd, mdhd.first == 1 ? 20 : 12, 4)
        }
        return scales
    }

    /// Where each track ends with this fragment.
    private static func note(_ moof: [UInt8], _ ends: inout [UInt64: UInt64]) {
        for traf in MP4Boxes.children(moof, "traf") {
            guard let tfhd = MP4Boxes.children(traf, "tfhd").first,
                let tfdt = MP4Boxes.children(traf, "tfdt").first
            else {
                continue
            }
            let track = MP4Boxes.number(tfhd, 4, 4)
            var end = MP4Boxes.number(tfdt, 4, tfdt.first == 1 ? 8 : 4)
            let usual = usualDuration(tfhd)
            for run in MP4Boxes.children(traf, "trun") { end &+= duration(of: run, usual: usual) }
            ends[track] = max(ends[track] ?? 0, end)
        }
    }

    private static func usualDuration(_ tfhd: [UInt8]) -> UInt64 {
        let flags = MP4Boxes.number(tfhd, 1, 3)
        guard flags & 0x08 != 0 else { return 0 }
        return MP4Boxes.number(tfhd, 8 + (flags & 0x01 != 0 ? 8 : 0) + (flags & 0x02 != 0 ? 4 : 0), 4)
    }

    private static func duration(of run: [UInt8], usual: UInt64) -> UInt64 {
        let flags = MP4Boxes.number(run, 1, 3)
        let count = min(MP4Boxes.number(run, 4, 4), 100_000)
        guard flags & 0x100 != 0 else { return count &* usual }
        let start = 8 + (flags & 0x01 != 0 ? 4 : 0) + (flags & 0x04 != 0 ? 4 : 0)
        let width = 4 * [0x100, 0x200, 0x400, 0x800].count { flags & $0 != 0 }
        return (0..<Int(count)).reduce(0) { $0 &+ MP4Boxes.number(run, start + $1 * width, 4) }
    }
}
