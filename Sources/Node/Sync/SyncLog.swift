/// The last changes that were announced, for followers who come back; bounded in number and bytes.
struct SyncLog {
    private struct Entry {
        let version: UInt64
        let text: String
    }

    private static let limit = 2_048
    private static let byteLimit = 256 * 1_024

    private var entries: [Entry] = []
    private var first = 0
    private var bytes = 0
    /// The version before the oldest entry: whoever knows it can be told the rest.
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

    /// What somebody missed who knows `version`; nil if that cannot be said any more, or never was announced.
    func changes(since version: UInt64) -> [String]? {
        let kept = entries[first...]
        guard version >= base, version <= kept.last?.version ?? base else { return nil }
        guard version == base || kept.contains(where: { $0.version == version }) else { return nil }
        return kept.drop { $0.version <= version }.map(\.text)
    }
}
