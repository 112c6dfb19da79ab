import Wire

/// Extracts the H.264 pictures from fragmented MP4, as HLS delivers it.
/// - Source: ISO/IEC 14496-12 §8.8 (fragments); ISO/IEC 14496-15 §5.4.2 (avc1).
struct FragmentReader {
    /// A coded picture.
    struct Frame: Equatable {
        /// With start codes; frames that a decoder can start with also have parameter sets.
        var bytes: [UInt8]
        /// When it is shown, in nanoseconds from the first fragment of its part or segment.
        var time: Int64
    }

    /// Why media cannot be parsed.
    enum Failure: Error, Equatable {
        /// There is no H.264 track.
        case noPictures
        /// A box contradicts its own sizes, or is missing.
        case malformed
    }

    /// The H.264 track.
    private struct Track {
        let id: UInt64
        /// Ticks a second.
        let timescale: UInt64
        let configuration: AVCConfiguration
        let defaults: MP4SampleDefaults
    }

    private let track: Track
    /// Bytes of an `avc1` sample entry before its boxes.
    private static let sampleEntryLength = 78
    private static let startCode: [UInt8] = [0, 0, 0, 1]
    /// The longest time from the first fragment to a picture that is accepted, in nanoseconds: a day.
    private static let longest = 86_400e9

    /// Parses an initialization segment, and selects its first H.264 track.
    init(initialization bytes: [UInt8]) throws(Failure) {
        guard let movie = MP4BoxBody(bytes)["moov"] else { throw .malformed }
        for trak in movie.children("trak") {
            guard let header = trak["tkhd"], let media = trak["mdia"], let mediaHeader = media["mdhd"],
                let description = media["minf"]?["stbl"]?["stsd"],
                // `stsd` has version, flags and a count before its entries.
                let entry = MP4BoxBody(Array(description.bytes.dropFirst(8)))["avc1"],
                let record = MP4BoxBody(Array(entry.bytes.dropFirst(Self.sampleEntryLength)))["avcC"]
            else { continue }
            guard let configuration = try? AVCConfiguration(parsing: record.bytes.span) else {
                throw .malformed
            }
            // Version 1 has times of 64 bits.
            let isLong = header.version == 1
            let id = header.number(at: isLong ? 20 : 12, count: 4)
            let timescale = mediaHeader.number(at: mediaHeader.version == 1 ? 20 : 12, count: 4)
            guard timescale > 0 else { throw .malformed }
            let extends = movie["mvex"]?.children("trex").first { $0.number(at: 4, count: 4) == id }
            track = Track(
                id: id, timescale: timescale, configuration: configuration,
                defaults: extends.map { MP4SampleDefaults(trex: $0) } ?? MP4SampleDefaults())
            return
        }
        throw .noPictures
    }

    /// The pictures of a part or a segment, in decoding order.
    func frames(of media: [UInt8]) throws(Failure) -> [Frame] {
        let source = ByteSource(media)
        var frames: [Frame] = []
        /// Decoding time of the first fragment, from which all times count.
        var zero: UInt64?
        for box in MP4Boxes(in: source, from: 0, to: source.size) where box.type == "moof" {
            for fragment in MP4BoxBody(of: box, source).children("traf") {
                guard let header = fragment["tfhd"], header.number(at: 4, count: 4) == track.id else {
                    continue
                }
                let start = fragment["tfdt"]?.versionedNumber(at: 4) ?? 0
                let first = zero ?? start
                zero = first
                let defaults = MP4SampleDefaults(tfhd: header, of: track.defaults)
                // Without a `trun` offset, samples begin at the `moof`. A fragment may also lie before the first one.
                var place = Place(offset: box.start, ticks: Int64(truncatingIfNeeded: start &- first))
                for run in fragment.children("trun") {
                    try read(
                        MP4TrackRun(run, defaults: defaults), of: media, from: box.start, &place,
                        into: &frames)
                }
            }
        }
        return frames
    }

    /// The place of the next sample.
    private struct Place {
        /// In bytes, from the beginning of the media.
        var offset: Int64
        /// Decoding time, in ticks from the first fragment on.
        var ticks: Int64
    }

    /// Appends the samples of one track run.
    private func read(
        _ run: MP4TrackRun, of media: [UInt8], from moof: Int64, _ place: inout Place,
        into frames: inout [Frame]
    ) throws(Failure) {
        if let offset = run.dataOffset { place.offset = moof + Int64(offset) }
        var failure: Failure?
        run.forEach { sample in
            guard failure == nil else { return }
            // The composition offset is signed in version 1, and small enough to be read as signed in version 0.
            let shown = place.ticks &+ Int64(Int32(truncatingIfNeeded: sample.compositionTimeOffset))
            let time = (Double(shown) * 1e9 / Double(track.timescale)).rounded()
            let end = place.offset + Int64(clamping: sample.size)
            guard place.offset >= 0, end <= Int64(media.count), time.magnitude <= Self.longest,
                let bytes = annexB(media, Int(place.offset)..<Int(end), hasParameters: sample.isSync)
            else {
                failure = .malformed
                return
            }
            frames.append(Frame(bytes: bytes, time: Int64(time)))
            place.offset = end
            place.ticks &+= Int64(clamping: sample.duration)
        }
        if let failure { throw failure }
    }

    /// Replaces the length of each NAL unit by a start code, as decoders expect it; nil if the lengths do not add up.
    private func annexB(_ media: [UInt8], _ sample: Range<Int>, hasParameters: Bool) -> [UInt8]? {
        let bytes = media.span.extracting(sample)
        guard let units = try? track.configuration.units(in: bytes) else { return nil }
        var frame: [UInt8] = []
        frame.reserveCapacity(sample.count + 64)
        if hasParameters {
            for set in track.configuration.sequenceParameters + track.configuration.pictureParameters {
                frame += Self.startCode + set
            }
        }
        for unit in units {
            frame += Self.startCode
            frame += media[(sample.lowerBound + unit.lowerBound)..<(sample.lowerBound + unit.upperBound)]
        }
        return frame
    }
}
