import Glibc

/// Mends a recording whose writer ended before the file did: takes off what is not whole, finds out how long it plays,
/// and tells players.
enum RecordingRepair {
    struct Length: Equatable {
        let milliseconds: Int64
        let size: Int64
    }

    /// - Parameter container: `webm` or `mp4`.
    /// - Returns: nil if the file cannot be read or written.
    static func repair(_ path: String, _ container: String) -> Length? {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let size = Int64(lseek(descriptor, 0, SEEK_END))
        guard size >= 0 else { return nil }
        let source: (Int64, Int) -> [UInt8] = { offset, count in
            var bytes = [UInt8](repeating: 0, count: count)
            let read = pread(descriptor, &bytes, count, off_t(offset))
            return read > 0 ? Array(bytes.prefix(read)) : []
        }
        let outline = container == "mp4" ? MP4Outline.read(size, source) : WebMOutline.read(size, source)
        if outline.end < size, ftruncate(descriptor, off_t(outline.end)) != 0 { return nil }
        if let patch = outline.patch {
            guard pwrite(descriptor, patch.bytes, patch.bytes.count, off_t(patch.offset)) == patch.bytes.count
            else { return nil }
        }
        let length = container == "mp4" ? MP4Completion.complete(descriptor, size: outline.end, source) : nil
        fsync(descriptor)
        return Length(milliseconds: outline.milliseconds, size: length ?? outline.end)
    }
}

/// What a file's structure says.
package struct RecordingOutline: Equatable {
    /// Bytes to be written over others, so that a file that was cut off says how long it is.
    package struct Patch: Equatable {
        /// From the beginning of the file.
        package let offset: Int64
        package let bytes: [UInt8]
    }

    /// Of the last piece that is whole.
    package var end: Int64 = 0
    /// How long the whole pieces play.
    package var milliseconds: Int64 = 0
    /// What tells players how long it plays.
    package var patch: Patch?
}

/// Reads where the clusters of a WebM file lie.
///
/// As our own muxer writes them: a segment of unknown size, clusters with sizes, time stamps in milliseconds.
/// - Source: RFC 8794 (EBML), RFC 9559 §5.1 (Matroska elements).
package enum WebMOutline {
    private struct Element {
        let id: UInt64
        let body: Int64
        /// Nil for one that goes on to the end of the file.
        let end: Int64?
    }

    private enum ID {
        static let header: UInt64 = 0x1A45_DFA3
        static let segment: UInt64 = 0x1853_8067
        static let info: UInt64 = 0x1549_A966
        static let duration: UInt64 = 0x4489
        static let void: UInt64 = 0xEC
        static let cluster: UInt64 = 0x1F43_B675
        static let timestamp: UInt64 = 0xE7
        static let simpleBlock: UInt64 = 0xA3
        static let blockGroup: UInt64 = 0xA0
        static let block: UInt64 = 0xA1
    }

    /// The last frame of a cluster is shown for so long.
    private static let lastFrame: Int64 = 33
    private static let clusterLimit = 64 << 20
    /// In milliseconds; nobody recorded for longer.
    private static let timeLimit: UInt64 = 1 << 40

    /// - Parameter source: bytes at an offset; fewer at the end of the file.
    package static func read(_ size: Int64, _ source: (Int64, Int) -> [UInt8]) -> RecordingOutline {
        var outline = RecordingOutline()
        guard let header = element(at: 0, size, source), header.id == ID.header, let place = header.end,
            let segment = element(at: place, size, source), segment.id == ID.segment
        else { return outline }
        var next = segment.body
        var last: Element?
        outline.end = next
        while let element = element(at: next, size, source), let end = element.end, end <= size {
            if element.id == ID.info { outline.patch = room(in: element, source) }
            if element.id == ID.cluster { last = element }
            outline.end = end
            next = end
        }
        if let last { outline.milliseconds = length(of: last, source) }
        if let patch = outline.patch {
            let value = Double(outline.milliseconds).bitPattern
            let bytes = (0..<8).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
            outline.patch = RecordingOutline.Patch(offset: patch.offset, bytes: [0x44, 0x89, 0x88] + bytes)
        }
        return outline
    }

    /// Where a duration belongs: what stands there now is a void of as many bytes, or an earlier duration.
    private static func room(in info: Element, _ source: (Int64, Int) -> [UInt8]) -> RecordingOutline.Patch? {
        guard let end = info.end else { return nil }
        var place = info.body
        while let element = element(at: place, end, source), let next = element.end, next <= end {
            if element.id == ID.duration || element.id == ID.void, next - place == 11 {
                return RecordingOutline.Patch(offset: place, bytes: [])
            }
            place = next
        }
        return nil
    }

    /// When the last frame of a cluster ends.
    private static func length(of cluster: Element, _ source: (Int64, Int) -> [UInt8]) -> Int64 {
        guard let end = cluster.end, end - cluster.body <= clusterLimit else { return 0 }
        let bytes = source(cluster.body, Int(end - cluster.body))
        let inside: (Int64, Int) -> [UInt8] = { offset, count in
            guard offset >= 0, offset < Int64(bytes.count) else { return [] }
            return Array(bytes[Int(offset)..<min(Int(offset) + count, bytes.count)])
        }
        let size = Int64(bytes.count)
        var base: Int64 = 0
        var latest: Int64 = 0
        var place: Int64 = 0
        while let child = element(at: place, size, inside), let next = child.end, next <= size {
            switch child.id {
            case ID.timestamp:
                base = Int64(min(number(inside(child.body, Int(next - child.body))), timeLimit))
            case ID.simpleBlock: latest = max(latest, relativeTime(inside(child.body, 12)))
            case ID.blockGroup:
                if let block = element(at: child.body, next, inside), block.id == ID.block {
                    latest = max(latest, relativeTime(inside(block.body, 12)))
                }
            default: break
            }
            place = next
        }
        return base &+ latest &+ lastFrame
    }

    /// Of a block, in milliseconds; behind the track's number.
    private static func relativeTime(_ bytes: [UInt8]) -> Int64 {
        guard let first = bytes.first else { return 0 }
        let length = first.leadingZeroBitCount + 1
        guard bytes.count >= length + 2 else { return 0 }
        return Int64(Int16(bitPattern: UInt16(bytes[length]) << 8 | UInt16(bytes[length + 1])))
    }

    private static func number(_ bytes: [UInt8]) -> UInt64 {
        bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func element(
        at place: Int64, _ limit: Int64, _ source: (Int64, Int) -> [UInt8]
    ) -> Element? {
        guard place < limit else { return nil }
        let bytes = source(place, 12)
        guard let first = bytes.first else { return nil }
        let idLength = first.leadingZeroBitCount + 1
        guard idLength <= 4, bytes.count > idLength else { return nil }
        let id = number(Array(bytes[..<idLength]))
        let sizeLength = bytes[idLength].leadingZeroBitCount + 1
        guard sizeLength <= 8, bytes.count >= idLength + sizeLength else { return nil }
        let marked = number(Array(bytes[idLength..<(idLength + sizeLength)]))
        let mask: UInt64 = (1 << (7 * UInt64(sizeLength))) - 1
        let size = marked & mask
        let body = place + Int64(idLength + sizeLength)
        guard size != mask else { return Element(id: id, body: body, end: nil) }
        guard size < 1 << 48 else { return nil }
        return Element(id: id, body: body, end: body + Int64(size))
    }
}
