import Wire

/// The frames of an MP4 file, collected from its fragments.
///
/// Expects what our own muxer writes: a `moov` without frames, then pairs of `moof` and `mdat`; or, in a completed
/// file, a `moov` with tables of all frames.
/// - Source: ISO/IEC 14496-12 §8.8 (fragments), §8.2.2 (mvhd), §8.4.2 (mdhd).
package struct MP4Fragments {
    /// The frames of one track, in the form that the tables need.
    struct Track {
        /// Frames that are stored consecutively.
        struct Chunk {
            let offset: Int64
            let count: UInt32
        }

        /// The track's `trak`, which has no frames.
        let trak: MP4BoxBody
        /// Ticks per second.
        let scale: UInt64
        fileprivate let defaults: MP4SampleDefaults
        var sizes: [UInt32] = []
        var chunks: [Chunk] = []
        /// Numbers of the frames at which a decoder can start, counted from 1.
        var syncs: [UInt32] = []
        /// Differences between decoding times in ticks, run-length encoded.
        var steps: [(count: UInt32, value: UInt32)] = []
        /// Composition time offsets in ticks, run-length encoded.
        var shifts: [(count: UInt32, value: UInt32)] = []
        /// Decoding time of the first frame; nil without frames.
        var first: UInt64?
        /// Decoding time of the last frame.
        var last: UInt64 = 0
        /// Duration of the last frame.
        var lastDuration: UInt64 = 0

        /// End of the last frame, in ticks from the beginning of the file.
        var end: UInt64 { last &+ lastDuration }

        /// Adds the frames of a run, which are stored consecutively.
        /// - Parameters:
        ///   - offset: of the first frame, in the file.
        ///   - start: the first frame's decoding time.
        fileprivate mutating func append(_ run: MP4TrackRun, at offset: Int64, from start: UInt64) {
            var time = start
            run.forEach { sample in
                append(sample, at: time)
                time &+= sample.duration
            }
            chunks.append(Chunk(offset: offset, count: UInt32(run.count)))
        }

        /// - Parameter time: the frame's decoding time.
        private mutating func append(_ sample: MP4TrackRun.Sample, at time: UInt64) {
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

        /// Adds a value to a run-length encoded list.
        static func extend(_ runs: inout [(count: UInt32, value: UInt32)], by value: UInt32) {
            if let latest = runs.last, latest.value == value, latest.count < .max {
                runs[runs.count - 1].count += 1
            } else {
                runs.append((1, value))
            }
        }
    }

    /// A run of a fragment, before it is known whether all of the fragment is valid.
    private struct FoundRun {
        let track: UInt64
        let frames: MP4TrackRun
        let offset: Int64
        let time: UInt64
    }

    /// Frames of a track that tables are made for; more than 16 hours of video or audio have.
    private static let frameLimit = 5_000_000

    /// The `moov` box and its contents; nil for a file that this server did not write.
    package private(set) var moov: (box: MP4Box, body: MP4BoxBody)?
    /// All `moof` boxes that are followed by their frames, up to the first invalid one.
    private(set) var moofs: [MP4Box] = []
    private(set) var tracks: [UInt64: Track] = [:]
    /// Position after the last valid frame.
    package private(set) var end: Int64 = 0
    /// Whether the file has its tables already.
    package private(set) var isWhole = false
    /// Whether a track has more frames than `frameLimit`, so that its tables would end too early.
    private(set) var isOverfull = false
    /// The end of the last complete box, and the playing time.
    package private(set) var outline = RecordingOutline()

    /// Reads all boxes of a file.
    package init(_ source: ByteSource) {
        var pending: MP4Box?
        // False after the first invalid fragment; frames behind it are not collected.
        var isSound = true
        for box in MP4Boxes(in: source, from: 0, to: source.size) {
            switch box.type {
            case "moov":
                let body = MP4BoxBody(of: box, source)
                outline.milliseconds = max(outline.milliseconds, Self.wholeDuration(body))
                // A second `moov` contains tables that an interrupted completion has begun to write; they are written
                // again.
                if moov != nil { isSound = false }
                if isSound { begin(box, body) }
            case "moof":
                if isSound { moofs.append(box) }
                pending = box
                // A `moof` is useless without its `mdat`, so the file does not end here.
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

    /// Takes over the tracks, unless the tables exist already.
    private mutating func begin(_ box: MP4Box, _ body: MP4BoxBody) {
        moov = (box, body)
        isWhole = body["mvex"] == nil
        if !isWhole { tracks = Self.tracks(body) }
        end = box.end
    }

    /// Playing time of a completed file, in milliseconds.
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

    /// Collects the frames of one fragment.
    /// - Returns: false if the fragment contradicts itself or the file; none of its frames is collected then.
    private mutating func take(_ moof: MP4BoxBody, at start: Int64, _ mdat: MP4Box) -> Bool {
        guard let runs = validRuns(of: moof, at: start, mdat) else { return false }
        // In place: a copy for each fragment would make a recording's completion quadratic in its length.
        for run in runs { tracks[run.track]?.append(run.frames, at: run.offset, from: run.time) }
        return true
    }

    /// The runs of one fragment; nil if the fragment contradicts itself or the file.
    private mutating func validRuns(of moof: MP4BoxBody, at start: Int64, _ mdat: MP4Box) -> [FoundRun]? {
        var runs: [FoundRun] = []
        var counts: [UInt64: Int] = [:]
        var next = mdat.bodyStart
        for traf in moof.children("traf") {
            guard let tfhd = traf["tfhd"], let tfdt = traf["tfdt"] else { return nil }
            let id = tfhd.number(at: 4, count: 4)
            guard let track = tracks[id] else { return nil }
            let defaults = MP4SampleDefaults(tfhd: tfhd, of: track.defaults)
            var time = tfdt.versionedNumber(at: 4)
            guard time < 1 << 48 else { return nil }
            for body in traf.children("trun") {
                let run = MP4TrackRun(body, defaults: defaults)
                guard run.count > 0 else { continue }
                guard run.count <= Self.frameLimit - track.sizes.count - counts[id, default: 0] else {
                    isOverfull = true
                    continue
                }
                if let offset = run.dataOffset { next = start + Int64(offset) }
                let found = FoundRun(track: id, frames: run, offset: next, time: time)
                run.forEach { sample in
                    time &+= sample.duration
                    next &+= Int64(clamping: sample.size)
                }
                guard found.offset >= mdat.bodyStart, next <= mdat.end, time < 1 << 49 else { return nil }
                counts[id, default: 0] += run.count
                runs.append(found)
            }
        }
        return runs
    }
}
