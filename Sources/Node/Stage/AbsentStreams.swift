import Base

/// Names that the store did not know when it was asked: it need not be asked again.
///
/// Only this process writes the store, so a name stays unknown until it is made here. Bounded, because strangers may
/// ask for any name: half of the names are forgotten at once, those that were asked for longest ago.
struct AbsentStreams {
    static let limit = 16_384

    private var recent: Set<StreamID> = []
    private var older: Set<StreamID> = []

    var count: Int { recent.count + older.count }

    func contains(_ id: StreamID) -> Bool { recent.contains(id) || older.contains(id) }

    mutating func insert(_ id: StreamID) {
        guard !contains(id) else { return }
        if recent.count >= Self.limit / 2 {
            older = recent
            recent = []
        }
        recent.insert(id)
    }

    /// Somebody makes it, or waits for it.
    mutating func remove(_ id: StreamID) {
        recent.remove(id)
        older.remove(id)
    }
}
