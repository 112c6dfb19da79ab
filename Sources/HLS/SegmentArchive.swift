import Base

/// Segments that are on the disk and not in memory any more; they determine how far back viewers can go.
///
/// No I/O. The owner reports which files have been written, and deletes the files that this returns.
struct SegmentArchive: Sendable {
    /// One segment of the archive.
    struct Entry: Equatable, Sendable {
        let sequenceNumber: Int
        /// Number of its initialization segment.
        let initialization: Int
        let isDiscontinuous: Bool
        let milliseconds: Int
        /// The file's name.
        let name: String
        /// The segment's tags and name in playlists, without those of a change of the initialization segment.
        let lines: [String]
    }

    /// Longest reach in milliseconds, including the segments in memory; 0 to keep none.
    var window = 0
    /// The oldest first, without a gap up to the first segment in memory.
    private(set) var entries: [Entry] = []
    /// Total duration of `entries`.
    private(set) var milliseconds = 0
    /// Files that are in no playlist any more, until `takeForgotten` returns them.
    private var forgotten: [String] = []

    /// Adds the segment that has just left memory.
    mutating func append(_ entry: Entry) {
        entries.append(entry)
        milliseconds += entry.milliseconds
    }

    /// Removes the oldest segments that are beyond the window.
    /// - Parameter held: duration of the segments in memory, in milliseconds.
    mutating func trim(besides held: Int) {
        var count = 0
        while count < entries.count, milliseconds + held > window {
            milliseconds -= entries[count].milliseconds
            forgotten.append(entries[count].name)
            count += 1
        }
        entries.removeFirst(count)
    }

    /// Removes all segments, because the one that follows them is not on the disk and a gap must not appear.
    mutating func clear() {
        forgotten += entries.map(\.name)
        entries = []
        milliseconds = 0
    }

    /// Files that may be deleted, once players have had time to fetch them.
    mutating func takeForgotten() -> [String] {
        defer { forgotten = [] }
        return forgotten
    }

    /// Sequence numbers in the archive have no gaps, so its first and its size suffice.
    func contains(_ sequenceNumber: Int) -> Bool {
        guard let first = entries.first else { return false }
        return (first.sequenceNumber..<first.sequenceNumber + entries.count).contains(sequenceNumber)
    }
}
