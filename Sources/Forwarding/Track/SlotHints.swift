import Crypto
import Peer

/// Where in memory the viewers of a layer are, in the order in which they are served.
///
/// While one viewer's packets are made, what a later one needs is loaded.
struct SlotHints {
    private struct Entry {
        let slot: CacheHint
        let session: CacheHint
        let connection: CacheHint
        let keys: CacheHint?
        let path: CacheHint?
    }

    /// Bytes of a path that sending reads and writes: the numbers of what was sent.
    private static let pathBytes = 64

    /// So many viewers later: a viewer's packets take about as long as memory does to answer.
    private static let ahead = 2
    /// Keys appear with a viewer's first packet, and are looked for again after so many turns.
    private static let patience = 64

    private var entries: [Entry] = []
    private var isOutdated = true
    private var turnsWithoutKeys = 0

    /// The slots are others now.
    mutating func invalidate() {
        isOutdated = true
    }

    /// Called before the slots are served.
    mutating func update(for slots: [Slot]) {
        if turnsWithoutKeys > 0 { turnsWithoutKeys += 1 }
        guard isOutdated || turnsWithoutKeys > Self.patience else { return }
        isOutdated = false
        turnsWithoutKeys = 0
        entries.removeAll(keepingCapacity: true)
        for slot in slots {
            let (connection, keys) = slot.connection.cacheHints
            if keys == nil { turnsWithoutKeys = 1 }
            entries.append(
                Entry(
                    slot: CacheHint(slot, bytes: Slot.hotBytes), session: CacheHint(slot.session, bytes: 64),
                    connection: connection, keys: keys,
                    path: slot.path.map { CacheHint($0, bytes: Self.pathBytes) }))
        }
    }

    /// Loads what the viewers after this one need.
    ///
    /// - Parameter index: of the next one.
    func prefetch(after index: Int) {
        let next = index &+ Self.ahead
        guard next < entries.count else { return }
        let entry = entries[next]
        entry.slot.prefetch()
        entry.connection.prefetch()
        entry.session.prefetch()
        entry.keys?.prefetch()
        entry.path?.prefetch()
    }

    /// Loads what another layer of the same viewers needs besides.
    func prefetchSlot(after index: Int) {
        let next = index &+ Self.ahead
        guard next < entries.count else { return }
        entries[next].slot.prefetch()
    }
}
