import Base
import Dispatch
import Glibc
import Wire

/// The indexes of recordings that are played by HLS; each is made once from its file, and cached.
///
/// Files are read one after another on a queue, and only one box at a time is in memory.
actor FragmentIndexes {
    /// What came of reading a file.
    private struct Reading: Sendable {
        /// Nil for a file without fragments, and for one that could not be read.
        let index: FragmentIndex?
        /// Whether the file could be read.
        let isConclusive: Bool
    }

    /// An index in the cache.
    private struct Kept {
        /// Nil for a file without fragments, so that it is not read again for each request.
        let index: FragmentIndex?
        /// Size of the file from which it was made; a file of another size is read again.
        let size: Int64
        var lastUse: UInt64
    }

    /// Indexes in the cache; the least recently used one is dropped first.
    private static let limit = 64
    /// Fragments in all cached indexes: 8 MiB.
    private static let costLimit = 1 << 20
    /// Files that may wait to be read.
    private static let waitingLimit = 32

    private let queue = DispatchQueue(label: "recording-indexes", qos: .utility)
    private var kept: [String: Kept] = [:]
    /// Reads under way, which further requests for the same recording join.
    private var underWay: [String: Task<Reading, Never>] = [:]
    /// Counts requests; serves as a clock for `lastUse`.
    private var uses: UInt64 = 0

    /// - Parameters:
    ///   - entry: must have ended, so that its file does not change any more.
    ///   - path: the path of its file.
    /// - Returns: nil if the file has no fragments or cannot be read.
    /// - Throws: `busy` if too many files wait to be read.
    func index(of entry: RecordingEntry, at path: String) async throws(RecordingRefusal) -> FragmentIndex? {
        uses &+= 1
        if let found = kept[entry.id], found.size == entry.size {
            kept[entry.id]?.lastUse = uses
            return found.index
        }
        if let task = underWay[entry.id] { return await task.value.index }
        guard underWay.count < Self.waitingLimit else { throw .busy }
        let task = Task { [queue] in
            await withCheckedContinuation { continuation in
                queue.async { continuation.resume(returning: Self.read(path)) }
            }
        }
        underWay[entry.id] = task
        let reading = await task.value
        underWay[entry.id] = nil
        // A file that could not be read, for want of descriptors for example, is read again at the next request.
        if reading.isConclusive { keep(reading.index, of: entry) }
        return reading.index
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

    /// Reads a file on the queue.
    private static func read(_ path: String) -> Reading {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return Reading(index: nil, isConclusive: false) }
        defer { close(descriptor) }
        let size = Int64(lseek(descriptor, 0, SEEK_END))
        var hasFailed = false
        let index = FragmentIndex(ByteSource(size: size, of: descriptor) { hasFailed = true })
        return Reading(index: hasFailed ? nil : index, isConclusive: !hasFailed)
    }
}

extension ByteSource {
    /// A file, which must stay open as long as the source is used.
    /// - Parameter fail: called when bytes that may exist cannot be read.
    init(size: Int64, of descriptor: CInt, fail: @escaping () -> Void) {
        self.init(size: size) { offset, count in
            var bytes = [UInt8](repeating: 0, count: count)
            let read = pread(descriptor, &bytes, count, off_t(offset))
            if read < 0 { fail() }
            return read > 0 ? Array(bytes.prefix(read)) : []
        }
    }
}

extension RecordingDesk {
    /// The index of a recording for playback by HLS.
    /// - Throws: `underWay` if the file may still grow; `notFragmented` if it is no fragmented MP4; `busy`.
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
