import Glibc
import Wire

/// Turns a fragmented MP4 file into one whose length players know and in which all of them can seek.
///
/// While a file grows, each fragment describes its own frames, so a crash costs only the last one. When the file ends,
/// tables of all frames are appended, and then the boxes that they replace are marked as free. An interruption at any
/// point leaves a file that plays and can be completed later.
/// - Source: ISO/IEC 14496-12 §8.2 (movie), §8.6.1 (time), §8.6.6 (elst), §8.7 (places), §8.1.2 (free).
package enum MP4Completion {
    /// - Parameter fragments: of the file, whose incomplete end must have been cut off.
    /// - Returns: the new size in bytes; nil if the file is unchanged.
    static func complete(_ descriptor: CInt, _ fragments: MP4Fragments) -> Int64? {
        // A file with more frames than tables may have stays fragmented: so it plays whole.
        guard let moov = fragments.moov, !fragments.isOverfull else { return nil }
        var end = fragments.outline.end
        if !fragments.isWhole {
            guard let tables = tables(fragments), ftruncate(descriptor, off_t(fragments.end)) == 0 else {
                return nil
            }
            guard write(descriptor, tables, at: fragments.end), fsync(descriptor) == 0 else {
                // There is no space for the tables; the file plays without them.
                ftruncate(descriptor, off_t(fragments.end))
                return fragments.end
            }
            // Only after the tables are durable: until then the first `moov` is the one that players use.
            guard free(moov.box, descriptor), fsync(descriptor) == 0 else { return nil }
            end = fragments.end + Int64(tables.count)
        }
        for moof in fragments.moofs { _ = free(moof, descriptor) }
        return end
    }

    /// Writes all bytes at an offset; false on any error.
    private static func write(_ descriptor: CInt, _ bytes: [UInt8], at offset: Int64) -> Bool {
        var place = 0
        while place < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                pwrite(
                    descriptor, buffer.baseAddress.map { $0 + place }, bytes.count - place,
                    off_t(offset) + off_t(place))
            }
            guard count > 0 else { return false }
            place += count
        }
        return true
    }

    /// Marks a box as free by overwriting its type; its content stays.
    private static func free(_ box: MP4Box, _ descriptor: CInt) -> Bool {
        write(descriptor, Array("free".utf8), at: box.start + 4)
    }

    // MARK: Tables

    /// A `moov` with all frames; nil if there are none.
    package static func tables(_ fragments: MP4Fragments) -> [UInt8]? {
        guard let mvhd = fragments.moov?.body["mvhd"], mvhd.version == 0, mvhd.bytes.count >= 100 else {
            return nil
        }
        let scale = mvhd.number(at: 12, count: 4)
        let tracks = fragments.tracks.sorted { $0.key < $1.key }.map(\.value)
            .filter { !$0.sizes.isEmpty && $0.scale > 0 }
        guard scale > 0, !tracks.isEmpty else { return nil }
        let ends = tracks.map { $0.end / $0.scale &* scale &+ $0.end % $0.scale &* scale / $0.scale }
        var header = mvhd.bytes
        header.replaceSubrange(16..<20, with: bytes(UInt32(clamping: ends.max() ?? 0)))
        var body = box("mvhd", header)
        for (track, end) in zip(tracks, ends) {
            guard let trak = trak(track, end: end, movieScale: scale) else { return nil }
            body += trak
        }
        return box("moov", body)
    }

    /// A track's `trak` with tables; nil if the original lacks a box.
    private static func trak(_ track: MP4Fragments.Track, end: UInt64, movieScale: UInt64) -> [UInt8]? {
        guard let tkhd = track.trak["tkhd"], tkhd.version == 0, tkhd.bytes.count >= 84,
            let mdia = track.trak["mdia"], let mdhd = mdia["mdhd"], mdhd.version == 0,
            mdhd.bytes.count >= 24, let hdlr = mdia["hdlr"], let minf = mdia["minf"],
            let stsd = minf["stbl"]?["stsd"]
        else { return nil }
        let first = track.first ?? 0
        let length = track.end &- first
        var header = tkhd.bytes
        header.replaceSubrange(20..<24, with: bytes(UInt32(clamping: end)))
        // Version 1, because 32 bits overflow after half a day at 90 kHz.
        let times =
            [1, 0, 0, 0] + bytes(mdhd.number(at: 4, count: 4)) + bytes(mdhd.number(at: 8, count: 4))
        let newMdhd = times + mdhd.bytes[12..<16] + bytes(length) + mdhd.bytes[20..<24]
        var media: [UInt8] = []
        for kind in ["vmhd", "smhd", "dinf"] {
            for child in minf.children(kind) { media += box(kind, child.bytes) }
        }
        media += box("stbl", box("stsd", stsd.bytes) + frames(track))
        let empty = first / track.scale &* movieScale &+ first % track.scale &* movieScale / track.scale
        return box(
            "trak",
            box("tkhd", header) + (empty > 0 ? edits(empty: empty, length: end &- min(empty, end)) : [])
                + box("mdia", box("mdhd", newMdhd) + box("hdlr", hdlr.bytes) + box("minf", media)))
    }

    /// An edit list for a track that begins later than the others: a gap, then the media.
    private static func edits(empty: UInt64, length: UInt64) -> [UInt8] {
        let rate: [UInt8] = [0, 1, 0, 0]
        let nothing = bytes(empty) + bytes(UInt64.max) + rate
        return box(
            "edts",
            box("elst", [1, 0, 0, 0] + bytes(UInt32(2)) + nothing + bytes(length) + bytes(UInt64(0)) + rate))
    }

    /// The tables of a track: times, offsets, key frames, chunks, sizes and positions.
    private static func frames(_ track: MP4Fragments.Track) -> [UInt8] {
        var steps = track.steps
        MP4Fragments.Track.extend(&steps, by: UInt32(clamping: track.lastDuration))
        var result = box("stts", table(steps))
        if track.shifts.contains(where: { $0.value != 0 }) {
            result += box("ctts", table(track.shifts, version: 1))
        }
        if track.syncs.count < track.sizes.count { result += box("stss", table(track.syncs)) }
        var runs: [(first: UInt32, count: UInt32)] = []
        for (index, chunk) in track.chunks.enumerated() where runs.last?.count != chunk.count {
            runs.append((UInt32(index + 1), chunk.count))
        }
        result += box(
            "stsc",
            bytes(UInt32(0)) + bytes(UInt32(runs.count))
                + runs.flatMap { bytes($0.first) + bytes($0.count) + bytes(UInt32(1)) })
        result += box("stsz", bytes(UInt32(0)) + table(track.sizes))
        let places = track.chunks.flatMap { bytes(UInt64(clamping: $0.offset)) }
        return result + box("co64", bytes(UInt32(0)) + bytes(UInt32(track.chunks.count)) + places)
    }

    private static func table(_ runs: [(count: UInt32, value: UInt32)], version: UInt8 = 0) -> [UInt8] {
        var result = [version, 0, 0, 0] + bytes(UInt32(runs.count))
        result.reserveCapacity(8 + runs.count * 8)
        for run in runs { result += bytes(run.count) + bytes(run.value) }
        return result
    }

    /// A zero, a count and values; the zero is version and flags in `stss`, and the common size in `stsz`.
    private static func table(_ values: [UInt32]) -> [UInt8] {
        var result = bytes(UInt32(0)) + bytes(UInt32(values.count))
        result.reserveCapacity(8 + values.count * 4)
        for value in values { result += bytes(value) }
        return result
    }

    private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
        bytes(UInt32(clamping: body.count + 8)) + Array(type.utf8) + body
    }

    /// Big-endian bytes.
    private static func bytes<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
        stride(from: Value.bitWidth - 8, through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: value >> Value($0))
        }
    }
}
