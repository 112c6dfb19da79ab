import Glibc
import Wire

/// Repairs a recording whose writer ended before the file did.
///
/// It cuts off an incomplete end, determines the playing time, and writes it where players look for it.
enum RecordingRepair {
    /// The file after its repair.
    struct Length: Equatable {
        let milliseconds: Int64
        let size: Int64
    }

    /// Repairs a file in place.
    /// - Parameter container: `webm` or `mp4`.
    /// - Returns: nil if the file cannot be read or written.
    static func repair(_ path: String, _ container: String) -> Length? {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let size = Int64(lseek(descriptor, 0, SEEK_END))
        guard size >= 0 else { return nil }
        var hasFailed = false
        let source = ByteSource(size: size, of: descriptor) { hasFailed = true }
        let fragments = container == "mp4" ? MP4Fragments(source) : nil
        let outline = fragments?.outline ?? WebMOutline.read(source)
        // What the disk does not give now may be whole, and must not be cut off.
        guard !hasFailed else { return nil }
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

/// What the structure of a file reveals.
package struct RecordingOutline: Equatable {
    /// Bytes to overwrite, so that a file that was cut off states its playing time.
    package struct Patch: Equatable {
        /// Position in the file.
        package let offset: Int64
        package let bytes: [UInt8]
    }

    /// End of the last complete element.
    package var end: Int64 = 0
    /// Playing time of the complete elements.
    package var milliseconds: Int64 = 0
    /// Nil if the file has no place for its playing time.
    package var patch: Patch?
}
