/// The latest announced changes, for followers that come back after a lost connection.
struct SyncLog {
    private struct Entry {
        let version: UInt64
        let text: String
    }

    /// Changes that are kept at most.
    private static let limit = 2_048
    /// Bytes that are kept at most, in UTF-8.
    private static let byteLimit = 256 * 1_024

    private var entries: [Entry] = []
    /// The index of the oldest entry that counts.
    ///
    /// Those before it are removed in bulk, so that each removal is cheap on average.
    private var first = 0
    /// Bytes of the entries that count.
    private var bytes = 0
    /// The version before the oldest entry: a follower that knows it can get all the rest.
    private var base: UInt64

    init(base: UInt64) {
        self.base = base
    }

    mutating func append(_ text: String, version: UInt64) {
        entries.append(Entry(version: version, text: text))
        bytes += text.utf8.count
        while entries.count - first > Self.limit || bytes > Self.byteLimit {
            base = entries[first].version
            bytes -= entries[first].text.utf8.count
            first += 1
        }
        if first >= 256, first * 2 >= entries.count {
            entries.removeFirst(first)
            first = 0
        }
    }

    /// Returns the changes after a version; nil if they are no longer complete, or if the version was never
    /// announced.
    func changes(since version: UInt64) -> [String]? {
        let kept = entries[first...]
        guard version >= base, version <= kept.last?.version ?? base else { return nil }
        guard version == base || kept.contains(where: { $0.version == version }) else { return nil }
        return kept.drop { $0.version <= version }.map(\.text)
    }
}
