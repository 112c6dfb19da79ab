import Wire

/// Where the fragments of an MP4 recording lie in its file, and how long they play: what a playlist says of it.
///
/// The fragments of a file that was completed are there yet, marked as free (`MP4Completion`): its bytes are those of
/// the file before, but for the types of some boxes, which `restore` gives back. Times are those of the boxes.
/// - Source: ISO/IEC 14496-12 §8.8 (fragments); RFC 8216bis §3.1.2 (fragmented MPEG-4).
package struct FragmentIndex: Equatable, Sendable {
    /// Fragments that are fetched together.
    package struct Segment: Equatable, Sendable {
        /// In the file.
        package fileprivate(set) var bytes: Range<Int64>
        package fileprivate(set) var milliseconds: Int64
        /// Whether a decoder can begin with it.
        package let isIndependent: Bool
    }

    /// Segments end before the first key frame behind this, in milliseconds: of those every two seconds, before the
    /// second.
    private static let usualLength: Int64 = 3_500
    /// And somewhere behind this, in milliseconds: a source may send key frames only when it is asked for one.
    private static let greatestLength: Int64 = 12_000
    /// 34 hours of fragments of half a second; of more, the beginning.
    private static let fragmentLimit = 250_000
    /// Boxes that are looked at: a file may be full of empty ones.
    private static let boxLimit = 4 * fragmentLimit
    /// Nothing plays for longer, in milliseconds: a year.
    fileprivate static let timeLimit: Int64 = 366 * 86_400_000

    /// What a decoder must have before all else: the file's beginning.
    package let initialization: Range<Int64>
    /// One behind the other; the last one may play for nothing.
    package private(set) var segments: [Segment] = []
    /// Where the `moov` lies in the file.
    private let movie: Int64
    /// Where each `moof` lies in the file, in order.
    private var fragments: [Int64] = []
    /// When the last segment begins, in milliseconds.
    private var begin: Int64 = 0
    /// When the last fragment ends, in milliseconds.
    private var end: Int64 = 0

    /// Reads the boxes of a file, one after the other; what stands behind the first one that cannot be is left out.
    /// - Returns: nil if nothing in it can be played in fragments.
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
            // Tables of all frames.
            case "moov": break search
            default: break
            }
        }
        guard end > 0 else { return nil }
    }

    /// The `moov` that fragments need, in front of them, or what has become of it.
    private static func movie(_ boxes: inout MP4Boxes, _ source: ByteSource) -> (MP4Box, MP4BoxBody)? {
        while let box = boxes.next(), box.type != "moof", box.type != "mdat" {
            guard box.type == "moov" || box.type == "free" else { continue }
            let body = MP4BoxBody(of: box, source)
            if body["mvhd"] != nil, body["mvex"] != nil { return (box, body) }
        }
        return nil
    }

    private mutating func append(_ bytes: Range<Int64>, _ times: FragmentTracks.Times) {
        fragments.append(bytes.lowerBound)
        // Tracks overlap a little from one fragment to the next.
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
        // Where nothing was written for a while, the picture stands still.
        if !segments.isEmpty { segments[segments.count - 1].milliseconds = length }
        begin = from
        segments.append(
            Segment(bytes: bytes, milliseconds: end - from, isIndependent: times.isIndependent))
    }

    /// Where the last fragment ends in the file.
    package var size: Int64 { segments.last?.bytes.upperBound ?? 0 }
    /// What it takes in memory, in fragments.
    var cost: Int { fragments.count }

    // MARK: Bytes

    /// Gives bytes of the file the types that their boxes had while it grew.
    /// - Parameters:
    ///   - bytes: as they were read.
    ///   - offset: where in the file they begin.
    package func restore(_ bytes: inout [UInt8], from offset: Int64) {
        Self.write("moov", at: movie, to: &bytes, from: offset)
        let end = offset + Int64(bytes.count)
        // The first whose type may reach into the bytes.
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

/// The tracks of a fragmented file, as far as times of fragments take them.
private struct FragmentTracks {
    /// When a fragment plays, in milliseconds from the beginning.
    struct Times {
        var begin: Int64
        var end: Int64
        /// Whether a decoder can begin with it.
        var isIndependent: Bool
    }

    private struct Track {
        /// Ticks a second.
        let scale: UInt64
        let isVideo: Bool
        let defaults: MP4SampleDefaults
    }

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

    /// - Returns: nil for what cannot be.
    /// - Source: ISO/IEC 14496-12 §8.8.12 (tfdt).
    func times(of moof: MP4BoxBody) -> Times? {
        var result: Times?
        var hasVideo = false
        for traf in moof.children("traf") {
            guard let tfhd = traf["tfhd"], let tfdt = traf["tfdt"],
                let track = tracks[tfhd.number(at: 4, count: 4)], track.scale > 0,
                let begin = milliseconds(tfdt.versionedNumber(at: 4), track)
            else { return nil }
            let defaults = MP4SampleDefaults(tfhd: tfhd, of: track.defaults)
            var length: UInt64 = 0
            var isSync: Bool?
            for body in traf.children("trun") {
                MP4TrackRun(body, defaults: defaults).forEach { sample in
                    isSync = isSync ?? sample.isSync
                    length &+= sample.duration
                }
            }
            // Without frames it says nothing.
            guard let isSync else { continue }
            let ticks = tfdt.versionedNumber(at: 4).addingReportingOverflow(length)
            guard !ticks.overflow, let end = milliseconds(ticks.partialValue, track) else { return nil }
            let other = result ?? Times(begin: begin, end: end, isIndependent: true)
            result = Times(
                begin: min(other.begin, begin), end: max(other.end, end),
                isIndependent: track.isVideo ? isSync && other.isIndependent : other.isIndependent)
            hasVideo = hasVideo || track.isVideo
        }
        // Sound alone, where there are pictures, goes on with what came before.
        if !hasVideo, tracks.values.contains(where: \.isVideo) { result?.isIndependent = false }
        return result
    }

    /// - Returns: nil for more than a year.
    private func milliseconds(_ ticks: UInt64, _ track: Track) -> Int64? {
        let (whole, rest) = (ticks / track.scale, ticks % track.scale)
        guard whole < UInt64(FragmentIndex.timeLimit / 1_000) else { return nil }
        return Int64(whole * 1_000 + rest * 1_000 / track.scale)
    }
}
