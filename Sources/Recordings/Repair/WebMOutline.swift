import Wire

/// Finds the clusters of a WebM file.
///
/// Expects what our own muxer writes: a segment of unknown size, clusters of known size, and time stamps in
/// milliseconds.
/// - Source: RFC 9559 §5.1 (Matroska elements).
package enum WebMOutline {
    /// Milliseconds for which the last frame of a cluster is assumed to be shown.
    private static let lastFrame: Int64 = 33
    /// In bytes; larger clusters are not read.
    private static let clusterLimit: Int64 = 64 << 20
    /// In milliseconds; no recording is that long.
    private static let timeLimit: UInt64 = 1 << 40
    /// Size of a Duration element in bytes: ID, size, and a number of eight bytes.
    private static let durationLength: Int64 = 11

    /// The structure of a file; an empty outline if it is not WebM.
    package static func read(_ source: ByteSource) -> RecordingOutline {
        var outline = RecordingOutline()
        guard let header = source.element(at: 0), header.id == MatroskaID.ebml, let place = header.end,
            let segment = source.element(at: place), segment.id == MatroskaID.segment
        else { return outline }
        var last: EBMLElement?
        var durationPlace: Int64?
        outline.end = segment.dataStart
        for element in EBMLElements(in: source, from: segment.dataStart, to: source.size) {
            guard let end = element.end else { break }
            if element.id == MatroskaID.info { durationPlace = placeOfDuration(in: element, source) }
            if element.id == MatroskaID.cluster { last = element }
            outline.end = end
        }
        if let last { outline.milliseconds = length(of: last, source) }
        if let durationPlace {
            // The ID of Duration, and the size eight in one byte.
            var bytes: [UInt8] = [0x44, 0x89, 0x88]
            bytes.append(bigEndian: Double(outline.milliseconds).bitPattern)
            outline.patch = RecordingOutline.Patch(offset: durationPlace, bytes: bytes)
        }
        return outline
    }

    /// The position for the Duration element: that of a Void element of the same size, or of an earlier Duration.
    private static func placeOfDuration(in info: EBMLElement, _ source: ByteSource) -> Int64? {
        guard let end = info.end else { return nil }
        var place = info.dataStart
        for element in EBMLElements(in: source, from: info.dataStart, to: end) {
            guard let next = element.end else { break }
            if element.id == MatroskaID.duration || element.id == MatroskaID.void,
                next - place == durationLength
            {
                return place
            }
            place = next
        }
        return nil
    }

    /// When the last frame of a cluster ends, in milliseconds.
    private static func length(of cluster: EBMLElement, _ source: ByteSource) -> Int64 {
        guard let end = cluster.end, end - cluster.dataStart <= clusterLimit else { return 0 }
        let inside = ByteSource(source.bytes(at: cluster.dataStart, count: Int(end - cluster.dataStart)))
        var base: Int64 = 0
        var latest: Int64 = 0
        for child in EBMLElements(in: inside, from: 0, to: inside.size) {
            guard let next = child.end else { break }
            switch child.id {
            case MatroskaID.timestamp:
                let data = inside.bytes(at: child.dataStart, count: Int(next - child.dataStart))
                base = Int64(min(EBMLElement.unsignedInteger(data), timeLimit))
            case MatroskaID.simpleBlock: latest = max(latest, timestamp(of: child, inside))
            case MatroskaID.blockGroup:
                if let block = inside.element(at: child.dataStart), block.id == MatroskaID.block {
                    latest = max(latest, timestamp(of: block, inside))
                }
            default: break
            }
        }
        return base &+ latest &+ lastFrame
    }

    /// Time of a block relative to its cluster, in milliseconds.
    private static func timestamp(of block: EBMLElement, _ cluster: ByteSource) -> Int64 {
        let header = cluster.bytes(at: block.dataStart, count: MatroskaBlock.longestHeader)
        return Int64((try? MatroskaBlock(parsing: header.span))?.timestamp ?? 0)
    }
}
