import Wire

/// Where the fragments of an MP4 recording are in its file and how long they play, as a playlist needs it.
///
/// A completed file still contains its fragments, marked as free (`MP4Completion`). It differs from the file that grew
/// only in the types of some boxes, and `restore` gives those back. Times come from the boxes.
/// - Source: ISO/IEC 14496-12 §8.8 (fragments); RFC 8216bis §3.1.2 (fragmented MPEG-4).
package struct FragmentIndex: Equatable, Sendable {
    /// Consecutive fragments that a player fetches together.
    package struct Segment: Equatable, Sendable {
        /// Position in the file.
        package fileprivate(set) var bytes: Range<Int64>
        package fileprivate(set) var milliseconds: Int64
        /// Whether a decoder can start with it.
        package let isIndependent: Bool
    }

    /// In milliseconds: a segment ends before the first key frame after this time.
    ///
    /// With a key frame every two seconds that is the second one.
    private static let usualLength: Int64 = 3_500
    /// In milliseconds: a segment ends after this time even without a key frame, because some sources send one only on
    /// request.
    private static let greatestLength: Int64 = 12_000
    /// Fragments that are indexed, 34 hours at half a second each; of a longer recording only the beginning is
    /// playable.
    private static let fragmentLimit = 250_000
    /// Boxes that are read, because a file may consist of empty ones.
    private static let boxLimit = 4 * fragmentLimit
    /// In milliseconds, one year; no recording is longer.
    fileprivate static let timeLimit: Int64 = 366 * 86_400_000

    /// The start of the file, which a decoder needs before any segment.
    package let initialization: Range<Int64>
    /// In order and without gaps; the last one may have no duration.
    package private(set) var segments: [Segment] = []
    /// Position of the `moov` box.
    private let movie: Int64
    /// Positions of the `moof` boxes, ascending.
    private var fragments: [Int64] = []
    /// Start of the last segment, in milliseconds.
    private var begin: Int64 = 0
    /// End of the last fragment, in milliseconds.
    private var end: Int64 = 0

    /// Reads the boxes of a file in order, up to the first invalid one.
    /// - Returns: nil if the file contains nothing that can be played in fragments.
    package init?(_ source: ByteSource) {
        var boxes = MP4Boxes(in: source, from: 0, to: source.size)
        guard let (box, body) = Self.movie(&boxes, source) else { return nil }
        (movie, initialization) = (box.start, 0..<box.end)
        let tracks = FragmentTracks(body)
        var moof: (box: MP4Box, times: FragmentTracks.Times)?
        var count = 0
        search: while fragments.count < Self.fragmentLimit, count < Self.boxLimit, let box = boxes.next() {
            count += 1
            switch box.type {
            case "moof", "free":
                let body = MP4BoxBody(of: box, source)
                guard body["mfhd"] != nil else { continue }
                guard let times = tracks.times(of: body) else { break search }
                moof = (box, times)
            case "mdat":
                guard let (head, times) = moof, head.end == box.start else { break search }
                append(head.start..<box.end, times)
                moof = nil
            // The tables that completion has appended.
            case "moov": break search
            default: break
            }
        }
        guard end > 0 else { return nil }
    }

    /// The `moov` box in front of the fragments, under its original type or marked as free.
    private static func movie(_ boxes: inout MP4Boxes, _ source: ByteSource) -> (MP4Box, MP4BoxBody)? {
        while let box = boxes.next(), box.type != "moof", box.type != "mdat" {
            guard box.type == "moov" || box.type == "free" else { continue }
            let body = MP4BoxBody(of: box, source)
            if body["mvhd"] != nil, body["mvex"] != nil { return (box, body) }
        }
        return nil
    }

    /// Adds a fragment to the last segment, or begins the next segment with it.
    private mutating func append(_ bytes: Range<Int64>, _ times: FragmentTracks.Times) {
        fragments.append(bytes.lowerBound)
        // The tracks of one fragment end at slightly different times, so fragments overlap.
        let from = min(max(times.begin, begin), max(times.end, end))
        end = max(times.end, end)
        let length = from - begin
        let isNext = length >= Self.usualLength && times.isIndependent || length >= Self.greatestLength
        guard isNext || segments.isEmpty else {
            let last = segments.count - 1
            segments[last].bytes = segments[last].bytes.lowerBound..<bytes.upperBound
            segments[last].milliseconds = end - begin
            return
        }
        // A gap between fragments belongs to the segment before it, whose last picture stands still.
        if !segments.isEmpty { segments[segments.count - 1].milliseconds = length }
        begin = from
        segments.append(
            Segment(bytes: bytes, milliseconds: end - from, isIndependent: times.isIndependent))
    }

    /// Position of the end of the last fragment.
    package var size: Int64 { segments.last?.bytes.upperBound ?? 0 }
    /// Memory that the index takes, counted in fragments.
    var cost: Int { fragments.count }

    // MARK: Bytes

    /// Restores the box types that the file had while it grew.
    /// - Parameters:
    ///   - bytes: a piece of the file.
    ///   - offset: its position in the file.
    package func restore(_ bytes: inout [UInt8], from offset: Int64) {
        Self.write("moov", at: movie, to: &bytes, from: offset)
        let end = offset + Int64(bytes.count)
        // Binary search for the first fragment whose type is in the piece, at least in part.
        var (low, high) = (0, fragments.count)
        while low < high {
            let middle = (low + high) / 2
            if fragments[middle] + 8 <= offset { low = middle + 1 } else { high = middle }
        }
        while low < fragments.count, fragments[low] < end {
            Self.write("moof", at: fragments[low], to: &bytes, from: offset)
            low += 1
        }
    }

    /// Writes the part of a box's type that lies within the piece.
    private static func write(
        _ type: String, at box: Int64, to bytes: inout [UInt8], from offset: Int64
    ) {
        for (index, character) in type.utf8.enumerated() {
            let place = box + 4 + Int64(index) - offset
            guard place >= 0, place < bytes.count else { continue }
            bytes[Int(place)] = character
        }
    }
}

/// The properties of tracks that determine the times of fragments.
private struct FragmentTracks {
    /// When a fragment plays, in milliseconds from the beginning of the file.
    struct Times {
        var begin: Int64
        var end: Int64
        /// Whether a decoder can start with it.
        var isIndependent: Bool
    }

    private struct Track {
        /// Ticks per second.
        let scale: UInt64
        let isVideo: Bool
        let defaults: MP4SampleDefaults
    }

    /// Most frames of one fragment; ours have some hundred.
    ///
    /// Frames without fields of their own take no bytes, so a file could claim billions.
    private static let frameLimit = 100_000

    private var tracks: [UInt64: Track] = [:]

    /// - Source: ISO/IEC 14496-12 §8.3.2 (tkhd), §8.4.2 (mdhd), §8.4.3 (hdlr), §8.8.3 (trex).
    init(_ moov: MP4BoxBody) {
        var defaults: [UInt64: MP4SampleDefaults] = [:]
        for trex in moov["mvex"]?.children("trex") ?? [] {
            defaults[trex.number(at: 4, count: 4)] = MP4SampleDefaults(trex: trex)
        }
        for trak in moov.children("trak") {
            guard let tkhd = trak["tkhd"], let mdia = trak["mdia"], let mdhd = mdia["mdhd"] else { continue }
            let id = tkhd.number(at: tkhd.version == 1 ? 20 : 12, count: 4)
            tracks[id] = Track(
                scale: mdhd.number(at: mdhd.version == 1 ? 20 : 12, count: 4),
                isVideo: mdia["hdlr"]?.number(at: 8, count: 4) == 0x7669_6465,
                defaults: defaults[id] ?? MP4SampleDefaults())
        }
    }

    /// The times of a fragment over all of its tracks.
    /// - Returns: nil if the fragment is invalid.
    /// - Source: ISO/IEC 14496-12 §8.8.12 (tfdt).
    func times(of moof: MP4BoxBody) -> Times? {
        var result: Times?
        var hasVideo = false
        var frames = 0
        for traf in moof.children("traf") {
            guard let tfhd = traf["tfhd"], let tfdt = traf["tfdt"],
                let track = tracks[tfhd.number(at: 4, count: 4)], track.scale > 0,
                let begin = milliseconds(tfdt.versionedNumber(at: 4), track)
            else { return nil }
            let defaults = MP4SampleDefaults(tfhd: tfhd, of: track.defaults)
            var length: UInt64 = 0
            var isSync: Bool?
            for body in traf.children("trun") {
                let run = MP4TrackRun(body, defaults: defaults)
                frames += run.count
                guard frames <= Self.frameLimit else { return nil }
                run.forEach { sample in
                    isSync = isSync ?? sample.isSync
                    length &+= sample.duration
                }
            }
            // A track without frames in this fragment has no times.
            guard let isSync else { continue }
            let ticks = tfdt.versionedNumber(at: 4).addingReportingOverflow(length)
            guard !ticks.overflow, let end = milliseconds(ticks.partialValue, track) else { return nil }
            let other = result ?? Times(begin: begin, end: end, isIndependent: true)
            result = Times(
                begin: min(other.begin, begin), end: max(other.end, end),
                isIndependent: track.isVideo ? isSync && other.isIndependent : other.isIndependent)
            hasVideo = hasVideo || track.isVideo
        }
        // In a file with video, a fragment with audio alone shows the picture before it.
        if !hasVideo, tracks.values.contains(where: \.isVideo) { result?.isIndependent = false }
        return result
    }

    /// - Returns: nil for a year or more.
    private func milliseconds(_ ticks: UInt64, _ track: Track) -> Int64? {
        let (whole, rest) = (ticks / track.scale, ticks % track.scale)
        guard whole < UInt64(FragmentIndex.timeLimit / 1_000) else { return nil }
        return Int64(whole * 1_000 + rest * 1_000 / track.scale)
    }
}
