/// What the fragments of an MP4 file tell of its frames, gathered.
/// - Source: ISO/IEC 14496-12 §8.8 (fragments).
package struct MP4Fragments {
    /// Frames of one track, as tables want them.
    struct Track {
        /// Frames that lie one behind the other.
        struct Chunk {
            let offset: Int64
            let count: UInt32
        }

        /// Its `trak`, without the frames.
        let trak: [UInt8]
        /// Ticks a second.
        let scale: UInt64
        fileprivate let usual: Usual
        var sizes: [UInt32] = []
        var chunks: [Chunk] = []
        /// Numbers of frames, from 1, where a decoder can begin.
        var syncs: [UInt32] = []
        /// How far apart frames are decoded: so many, so many ticks.
        var steps: [(count: UInt32, value: UInt32)] = []
        /// How much later frames are shown.
        var shifts: [(count: UInt32, value: UInt32)] = []
        var first: UInt64?
        var last: UInt64 = 0
        /// Of the last frame.
        var lastDuration: UInt64 = 0

        /// Where the last frame ends, counted from the file's beginning.
        var end: UInt64 { last &+ lastDuration }

        /// - Parameter time: when it is decoded.
        fileprivate mutating func append(
            size: UInt64, time: UInt64, duration: UInt64, shift: UInt64, isSync: Bool
        ) {
            if first == nil {
                first = time
            } else {
                Self.extend(&steps, by: UInt32(clamping: time > last ? time - last : 0))
            }
            last = max(time, last)
            lastDuration = min(duration, 1 << 32)
            Self.extend(&shifts, by: UInt32(truncatingIfNeeded: shift))
            sizes.append(UInt32(clamping: size))
            if isSync { syncs.append(UInt32(clamping: sizes.count)) }
        }

        static func extend(_ runs: inout [(count: UInt32, value: UInt32)], by value: UInt32) {
            if let latest = runs.last, latest.value == value, latest.count < .max {
                runs[runs.count - 1].count += 1
            } else {
                runs.append((1, value))
            }
        }
    }

    /// What holds for a track's frames unless something else is said.
    struct Usual {
        var duration: UInt64 = 0
        var size: UInt64 = 0
        var flags: UInt64 = 0
    }

    /// More frames than in any recording: 16 hours of picture and sound.
    private static let frameLimit = 5_000_000

    /// The `moov` box and its contents; nil for a file that this server did not write.
    package private(set) var moov: (box: MP4Boxes.Box, bytes: [UInt8])?
    private(set) var moofs: [MP4Boxes.Box] = []
    private(set) var tracks: [UInt64: Track] = [:]
    /// Behind the last frame.
    package private(set) var end: Int64 = 0
    /// Tables of all frames were written already.
    package private(set) var isWhole = false

    package init(_ size: Int64, _ source: (Int64, Int) -> [UInt8]) {
        var place: Int64 = 0
        var pending: MP4Boxes.Box?
        while let box = MP4Boxes.box(at: place, size, source), box.end <= size {
            place = box.end
            switch box.type {
            case "moov":
                // Tables that somebody began to write when the tracks were known: they are written once more.
                guard moov == nil else { return }
                let bytes = MP4Boxes.contents(of: box, source)
                moov = (box, bytes)
                isWhole = MP4Boxes.children(bytes, "mvex").isEmpty
                if !isWhole { tracks = Self.tracks(bytes) }
                end = place
            case "moof":
                moofs.append(box)
                pending = box
            case "mdat":
                if let moof = pending, moov != nil, !isWhole {
                    guard take(MP4Boxes.contents(of: moof, source), at: moof.start, box) else { return }
                }
                pending = nil
                end = place
            default: break
            }
        }
    }

    private static func tracks(_ moov: [UInt8]) -> [UInt64: Track] {
        var usual: [UInt64: Usual] = [:]
        for mvex in MP4Boxes.children(moov, "mvex") {
            for trex in MP4Boxes.children(mvex, "trex") {
                usual[MP4Boxes.number(trex, 4, 4)] = Usual(
                    duration: MP4Boxes.number(trex, 12, 4), size: MP4Boxes.number(trex, 16, 4),
                    flags: MP4Boxes.number(trex, 20, 4))
            }
        }
        var tracks: [UInt64: Track] = [:]
        for trak in MP4Boxes.children(moov, "trak") {
            guard let tkhd = MP4Boxes.children(trak, "tkhd").first,
                let mdia = MP4Boxes.children(trak, "mdia").first,
                let mdhd = MP4Boxes.children(mdia, "mdhd").first
            else { continue }
            let id = MP4Boxes.number(tkhd, tkhd.first == 1 ? 20 : 12, 4)
            tracks[id] = Track(
                trak: trak, scale: MP4Boxes.number(mdhd, mdhd.first == 1 ? 20 : 12, 4),
                usual: usual[id] ?? Usual())
        }
        return tracks
    }

    /// - Returns: false if what it says cannot be.
    private mutating func take(_ moof: [UInt8], at start: Int64, _ mdat: MP4Boxes.Box) -> Bool {
        var next = mdat.body
        for traf in MP4Boxes.children(moof, "traf") {
            guard let tfhd = MP4Boxes.children(traf, "tfhd").first,
                let tfdt = MP4Boxes.children(traf, "tfdt").first,
                var track = tracks[MP4Boxes.number(tfhd, 4, 4)]
            else { return false }
            let usual = Self.usual(tfhd, track.usual)
            var time = MP4Boxes.number(tfdt, 4, tfdt.first == 1 ? 8 : 4)
            guard time < 1 << 48 else { return false }
            for run in MP4Boxes.children(traf, "trun") {
                let fields = Run(run, usual)
                guard fields.count > 0, fields.count <= Self.frameLimit - track.sizes.count else { continue }
                if let offset = fields.offset { next = start + Int64(offset) }
                let chunk = next
                fields.forEach { size, duration, flags, shift in
                    track.append(
                        size: size, time: time, duration: duration, shift: shift,
                        isSync: flags & 0x1_0000 == 0)
                    time &+= duration
                    next &+= Int64(clamping: size)
                }
                guard chunk >= mdat.body, next <= mdat.end, time < 1 << 49 else { return false }
                track.chunks.append(Track.Chunk(offset: chunk, count: UInt32(fields.count)))
            }
            tracks[MP4Boxes.number(tfhd, 4, 4)] = track
        }
        return true
    }

    private static func usual(_ tfhd: [UInt8], _ track: Usual) -> Usual {
        let flags = MP4Boxes.number(tfhd, 1, 3)
        var usual = track
        var place = 8 + (flags & 0x01 != 0 ? 8 : 0) + (flags & 0x02 != 0 ? 4 : 0)
        for (flag, field) in [(UInt64(0x08), \Usual.duration), (0x10, \.size), (0x20, \.flags)]
        where flags & flag != 0 {
            usual[keyPath: field] = MP4Boxes.number(tfhd, place, 4)
            place += 4
        }
        return usual
    }

    /// The frames of one `trun`.
    private struct Run {
        private let bytes: [UInt8]
        private let flags: UInt64
        private let usual: Usual
        let count: Int

        init(_ bytes: [UInt8], _ usual: Usual) {
            self.bytes = bytes
            self.usual = usual
            flags = MP4Boxes.number(bytes, 1, 3)
            // No more than it has room for, or, with nothing of their own, than make sense.
            count = Int(min(MP4Boxes.number(bytes, 4, 4), 100_000))
        }

        /// Of the first frame, from the fragment's start.
        var offset: Int32? {
            flags & 0x01 != 0 ? Int32(truncatingIfNeeded: MP4Boxes.number(bytes, 8, 4)) : nil
        }

        func forEach(_ body: (_ size: UInt64, _ duration: UInt64, _ flags: UInt64, _ shift: UInt64) -> Void) {
            var place = 8 + (flags & 0x01 != 0 ? 4 : 0)
            var firstFlags: UInt64?
            if flags & 0x04 != 0 {
                firstFlags = MP4Boxes.number(bytes, place, 4)
                place += 4
            }
            func field(_ flag: UInt64, _ usual: UInt64) -> UInt64 {
                guard flags & flag != 0 else { return usual }
                defer { place += 4 }
                return MP4Boxes.number(bytes, place, 4)
            }
            for index in 0..<count {
                let duration = field(0x100, usual.duration)
                let size = field(0x200, usual.size)
                let own = field(0x400, usual.flags)
                body(size, duration, index == 0 ? firstFlags ?? own : own, field(0x800, 0))
            }
        }
    }
}
