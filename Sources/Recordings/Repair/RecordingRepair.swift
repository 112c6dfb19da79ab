import Glibc
import Wire

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
        let source = ByteSource(size: size, of: descriptor)
        let fragments = container == "mp4" ? MP4Fragments(source) : nil
        let outline = fragments?.outline ?? WebMOutline.read(source)
        if outline.end < size, ftruncate(descriptor, off_t(outline.end)) != 0 { return nil }
        if let patch = outline.patch {
            guard pwrite(descriptor, patch.bytes, patch.bytes.count, off_t(patch.offset)) == patch.bytes.count
            else { return nil }
        }
        let length = fragments.flatMap { MP4Completion.complete(descriptor, $0) }
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
