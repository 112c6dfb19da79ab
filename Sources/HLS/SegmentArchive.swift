import Base

/// Segments that memory no longer holds and a disk does: how far back viewers can go.
///
/// No I/O. Whoever writes files says what is on the disk, and is told what may go from it.
struct SegmentArchive: Sendable {
    struct Entry: Equatable, Sendable {
        let sequenceNumber: Int
        /// The number of its initialization segment.
        let initialization: Int
        let isDiscontinuous: Bool
        let milliseconds: Int
        /// Of its file.
        let name: String
        /// Its tags and its name, as playlists have them, without what stands before a change of initialization.
        let lines: [String]
    }

    /// How long it is at most, with what memory holds, in milliseconds; 0 for none.
    var window = 0
    /// The oldest first, without a gap up to the first one in memory.
    private(set) var entries: [Entry] = []
    private(set) var milliseconds = 0
    /// Files that no playlist names any more.
    private var forgotten: [String] = []

    /// Takes in what memory has just let go of.
    mutating func append(_ entry: Entry) {
        entries.append(entry)
        milliseconds += entry.milliseconds
    }

    /// Forgets what lies further back than it may.
    /// - Parameter held: milliseconds that memory holds behind it.
    mutating func trim(besides held: Int) {
        var count = 0
        while count < entries.count, milliseconds + held > window {
            milliseconds -= entries[count].milliseconds
            forgotten.append(entries[count].name)
            count += 1
        }
        entries.removeFirst(count)
    }

    /// Forgets all: what follows it is not on the disk.
    mutating func clear() {
        forgotten += entries.map(\.name)
        entries = []
        milliseconds = 0
    }

    /// Files that may be removed, once players have had time for them.
    mutating func takeForgotten() -> [String] {
        defer { forgotten = [] }
        return forgotten
    }

    func contains(_ sequenceNumber: Int) -> Bool {
        guard let first = entries.first else { return false }
        return (first.sequenceNumber..<first.sequenceNumber + entries.count).contains(sequenceNumber)
    }
}
