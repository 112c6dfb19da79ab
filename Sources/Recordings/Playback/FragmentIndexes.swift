import Base
import Dispatch
import Glibc
import Wire

/// The indexes of recordings that somebody plays in fragments: each is made once, of its file, and kept while there is
/// room.
///
/// Files are read on a queue of their own, one after the other; of none more than a box is in memory.
actor FragmentIndexes {
    private struct Kept {
        /// Nil for a file without fragments.
        let index: FragmentIndex?
        /// Of the file that it was made of, in bytes.
        let size: Int64
        var lastUse: UInt64
    }

    /// Recordings whose indexes are kept; those that were not asked for the longest go first.
    private static let limit = 64
    /// Fragments in all indexes that are kept: 8 MiB.
    private static let costLimit = 1 << 20
    /// Files that may wait to be read.
    private static let waitingLimit = 32

    private let queue = DispatchQueue(label: "recording-indexes", qos: .utility)
    private var kept: [String: Kept] = [:]
    private var underWay: [String: Task<FragmentIndex?, Never>] = [:]
    private var uses: UInt64 = 0

    /// - Parameters:
    ///   - entry: has ended: its file does not change any more.
    ///   - path: of its file.
    /// - Returns: nil for a file without fragments, or one that cannot be read.
    func index(of entry: RecordingEntry, at path: String) async throws(RecordingRefusal) -> FragmentIndex? {
        uses &+= 1
        if let found = kept[entry.id], found.size == entry.size {
            kept[entry.id]?.lastUse = uses
            return found.index
        }
        if let task = underWay[entry.id] { return await task.value }
        guard underWay.count < Self.waitingLimit else { throw .busy }
        let task = Task { [queue] in
            await withCheckedContinuation { continuation in
                queue.async { continuation.resume(returning: Self.read(path)) }
            }
        }
        underWay[entry.id] = task
        let index = await task.value
        underWay[entry.id] = nil
        keep(index, of: entry)
        return index
    }

    private func keep(_ index: FragmentIndex?, of entry: RecordingEntry) {
        kept[entry.id] = Kept(index: index, size: entry.size, lastUse: uses)
        while kept.count > Self.limit || cost > Self.costLimit,
            let oldest = kept.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            kept[oldest.key] = nil
        }
    }

    private var cost: Int { kept.values.reduce(0) { $0 + ($1.index?.cost ?? 0) } }

    private static func read(_ path: String) -> FragmentIndex? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let size = Int64(lseek(descriptor, 0, SEEK_END))
        return FragmentIndex(ByteSource(size: size, of: descriptor))
    }
}

extension ByteSource {
    /// A file on the disk, for as long as it is open.
    init(size: Int64, of descriptor: CInt) {
        self.init(size: size) { offset, count in
            var bytes = [UInt8](repeating: 0, count: count)
            let read = pread(descriptor, &bytes, count, off_t(offset))
            return read > 0 ? Array(bytes.prefix(read)) : []
        }
    }
}

extension RecordingDesk {
    /// How a recording is played in fragments.
    /// - Throws: `notFragmented` for one that is not; `underWay` for one that may still grow.
    package nonisolated func fragments(
        of entry: RecordingEntry
    ) async throws(RecordingRefusal) -> FragmentIndex {
        guard entry.state == .ended else { throw .underWay }
        guard entry.fileExtension == "mp4", let path = readingPath(of: entry),
            let index = try await indexes.index(of: entry, at: path)
        else { throw .notFragmented }
        return index
    }
}
