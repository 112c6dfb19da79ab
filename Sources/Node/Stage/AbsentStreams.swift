import Base

/// Names that the store did not contain when it was last asked, so that it need not be asked again.
///
/// Only this process writes the store, so a name stays unknown until a stream is made here. The number is bounded,
/// because anonymous clients may request any name. When the set is full, the older half is forgotten.
struct AbsentStreams {
    /// Names that are remembered at most.
    static let limit = 16_384

    /// Two halves instead of a time for each name: a full `recent` replaces `older`.
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

    /// Forgets a name because the stream is made, or because a client waits for it.
    mutating func remove(_ id: StreamID) {
        recent.remove(id)
        older.remove(id)
    }
}
