import Wire

/// What the fragments of an MP4 file tell of its frames, gathered.
///
/// As our own muxer writes them: a `moov` without frames, then pairs of `moof` and `mdat`; or, once the file is
/// complete, a `moov` that knows all frames.
/// - Source: ISO/IEC 14496-12 §8.8 (fragments), §8.2.2 (mvhd), §8.4.2 (mdhd).
package struct MP4Fragments {
    /// Frames of one track, as tables want them.
    struct Track {
        /// Frames that lie one behind the other.
        struct Chunk {
            let offset: Int64
            let count: UInt32
        }

        /// Its `trak`, without the frames.
        let trak: MP4BoxBody
        /// Ticks a second.
        let scale: UInt64
        fileprivate let defaults: MP4SampleDefaults
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
        fileprivate mutating func append(_ sample: MP4TrackRun.Sample, at time: UInt64) {
            if first == nil {
                first = time
            } else {
                Self.extend(&steps, by: UInt32(clamping: time > last ? time - last : 0))
            }
            last = max(time, last)
            lastDuration = min(sample.duration, 1 << 32)
            Self.extend(&shifts, by: UInt32(truncatingIfNeeded: sample.compositionTimeOffset))
            sizes.append(UInt32(clamping: sample.size))
            if sample.isSync { syncs.append(UInt32(clamping: sizes.count)) }
        }

        static func extend(_ runs: inout [(count: UInt32, value: UInt32)], by value: UInt32) {
            if let latest = runs.last, latest.value == value, latest.count < .max {
                runs[runs.count - 1].count += 1
            } else {
                runs.append((1, value))
            }
        }
    }

    /// More frames than in any recording: 16 hours of picture and sound.
    private static let frameLimit = 5_000_000

    /// The `moov` box and its contents; nil for a file that this server did not write.
    package private(set) var moov: (box: MP4Box, body: MP4BoxBody)?
    /// Those in front of the end of the last box that is whole, as far as they can be.
    private(set) var moofs: [MP4Box] = []
    private(set) var tracks: [UInt64: Track] = [:]
    /// Behind the last frame.
    package private(set) var end: Int64 = 0
    /// Tables of all frames were written already.
    package private(set) var isWhole = false
    /// What is whole, and how long it plays.
    package private(set) var outline = RecordingOutline()

    package init(_ source: ByteSource) {
        var pending: MP4Box?
        // Until something comes that cannot be, behind which frames are no longer looked for.
        var isSound = true
        for box in MP4Boxes(in: source, from: 0, to: source.size) {
            switch box.type {
            case "moov":
                let body = MP4BoxBody(of: box, source)
                outline.milliseconds = max(outline.milliseconds, Self.wholeDuration(body))
                // Tables that somebody began to write when the tracks were known: they are written once more.
                if moov != nil { isSound = false }
                if isSound { begin(box, body) }
            case "moof":
                if isSound { moofs.append(box) }
                pending = box
                // It is worth nothing without its `mdat`.
                continue
            case "mdat":
                if isSound, let moof = pending, moov != nil, !isWhole {
                    isSound = take(MP4BoxBody(of: moof, source), at: moof.start, box)
                }
                pending = nil
                if isSound { end = box.end }
            default: break
            }
            outline.end = box.end
        }
        moofs.removeAll { $0.start >= outline.end }
        for track in tracks.values where track.scale > 0 && track.end < 1 << 50 {
            outline.milliseconds = max(outline.milliseconds, Int64(track.end * 1_000 / track.scale))
        }
    }

    private mutating func begin(_ box: MP4Box, _ body: MP4BoxBody) {
        moov = (box, body)
        isWhole = body["mvex"] == nil
        if !isWhole { tracks = Self.tracks(body) }
        end = box.end
    }

    /// In milliseconds, of a file that needs no fragments any more.
    private static func wholeDuration(_ moov: MP4BoxBody) -> Int64 {
        guard let mvhd = moov["mvhd"] else { return 0 }
        let scale = mvhd.number(at: mvhd.version == 1 ? 20 : 12, count: 4)
        let duration = mvhd.versionedNumber(at: mvhd.version == 1 ? 24 : 16)
        return scale > 0 && duration < 1 << 50 ? Int64(duration * 1_000 / scale) : 0
    }

    private static func tracks(_ moov: MP4BoxBody) -> [UInt64: Track] {
        var defaults: [UInt64: MP4SampleDefaults] = [:]
        for mvex in moov.children("mvex") {
            for trex in mvex.children("trex") {
                defaults[trex.number(at: 4, count: 4)] = MP4SampleDefaults(trex: trex)
            }
        }
        var tracks: [UInt64: Track] = [:]
        for trak in moov.children("trak") {
            guard let tkhd = trak["tkhd"], let mdhd = trak["mdia"]?["mdhd"] else { continue }
            let id = tkhd.number(at: tkhd.version == 1 ? 20 : 12, count: 4)
            tracks[id] = Track(
                trak: trak, scale: mdhd.number(at: mdhd.version == 1 ? 20 : 12, count: 4),
                defaults: defaults[id] ?? MP4SampleDefaults())
        }
        return tracks
    }

    /// - Returns: false if what it says cannot be.
    private mutating func take(_ moof: MP4BoxBody, at start: Int64, _ mdat: MP4Box) -> Bool {
        var next = mdat.bodyStart
        for traf in moof.children("traf") {
            guard let tfhd = traf["tfhd"], let tfdt = traf["tfdt"],
                var track = tracks[tfhd.number(at: 4, count: 4)]
            else { return false }
            let defaults = MP4SampleDefaults(tfhd: tfhd, of: track.defaults)
            var time = tfdt.versionedNumber(at: 4)
            guard time < 1 << 48 else { return false }
            for body in traf.children("trun") {
                let run = MP4TrackRun(body, defaults: defaults)
                guard run.count > 0, run.count <= Self.frameLimit - track.sizes.count else { continue }
                if let offset = run.dataOffset { next = start + Int64(offset) }
                let chunk = next
                run.forEach { sample in
                    track.append(sample, at: time)
                    time &+= sample.duration
                    next &+= Int64(clamping: sample.size)
                }
                guard chunk >= mdat.bodyStart, next <= mdat.end, time < 1 << 49 else { return false }
                track.chunks.append(Track.Chunk(offset: chunk, count: UInt32(run.count)))
            }
            tracks[tfhd.number(at: 4, count: 4)] = track
        }
        return true
    }
}
