import Crypto
import Peer

/// Memory addresses of a layer's viewers, in the order in which they are served.
///
/// While one viewer's packets are made, the memory for a later one is loaded into the cache.
struct SlotHints {
    private struct Entry {
        let slot: CacheHint
        let session: CacheHint
        let connection: CacheHint
        let keys: CacheHint?
        let path: CacheHint?
    }

    /// Size of the part of a path that sending reads and writes, in bytes: the numbers of sent packets.
    private static let pathBytes = 64

    /// How many viewers ahead memory is loaded: making one viewer's packets takes about as long as memory takes to
    /// answer.
    private static let ahead = 2
    /// Keys are created with a viewer's first packet; missing ones are looked up again after this many turns.
    private static let patience = 64

    private var entries: [Entry] = []
    private var isOutdated = true
    private var turnsWithoutKeys = 0

    /// Marks the addresses as outdated, because the slots have changed.
    mutating func invalidate() {
        isOutdated = true
    }

    /// Updates the addresses if necessary; called before the slots are served.
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

    /// Loads the memory of a viewer some places ahead.
    ///
    /// - Parameter index: of the next viewer.
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

    /// Loads only the slot some places ahead, for a second layer of the same viewers, whose other memory is loaded
    /// already.
    func prefetchSlot(after index: Int) {
        let next = index &+ Self.ahead
        guard next < entries.count else { return }
        entries[next].slot.prefetch()
    }
}
