import Base
import Synchronization

/// What is known of every stream, for lists: hosts write it, anybody reads it without waiting for a host.
package final class StreamDirectory: Sendable {
    private struct State {
        var entries: [StreamID: StreamSnapshot] = [:]
        /// Changed since the last `takeNews`.
        var changed: Set<StreamID> = []
    }

    private let state = Mutex(State())
    /// Says that there is something to be taken by `takeNews`, however much it is.
    let news: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    package init() {
        (news, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Puts a stream's latest state into the lists; the feed hears of it soon.
    package func update(_ snapshot: StreamSnapshot) {
        state.withLock { state in
            // Somebody who waits for a stream that nobody made does not put it into the lists.
            let isKnown = snapshot.state != .waiting || snapshot.createdAt != nil
            state.entries[snapshot.id] = isKnown ? snapshot : nil
            state.changed.insert(snapshot.id)
        }
        signal.yield()
    }

    /// Streams that changed since the last call, as they are now; nil for one that is not known any more.
    func takeNews() -> [StreamID: StreamSnapshot?] {
        state.withLock { state in
            defer { state.changed.removeAll() }
            return Dictionary(uniqueKeysWithValues: state.changed.map { ($0, state.entries[$0]) })
        }
    }

    func isBanned(_ participant: ParticipantID, from stream: StreamID) -> Bool {
        state.withLock { $0.entries[stream]?.banned[participant] != nil }
    }

    /// Forgets a stream; its record in the store stays.
    package func remove(_ id: StreamID) {
        state.withLock { state in
            state.entries[id] = nil
            state.changed.insert(id)
        }
        signal.yield()
    }

    package subscript(_ id: StreamID) -> StreamSnapshot? {
        state.withLock { $0.entries[id] }
    }

    /// Live streams first, then by the time they began or will begin, newest first; ties by name.
    package var all: [StreamSnapshot] {
        state.withLock { Array($0.entries.values) }.sorted { $0.listOrder < $1.listOrder }
    }
}

extension StreamSnapshot {
    /// Where a stream stands in lists.
    package struct ListOrder: Comparable, Sendable {
        package let rank: Int
        package let start: Int64
        package let id: String

        package init(rank: Int, start: Int64, id: String) {
            self.rank = rank
            self.start = start
            self.id = id
        }

        package static func < (left: ListOrder, right: ListOrder) -> Bool {
            if left.rank != right.rank { return left.rank < right.rank }
            if left.start != right.start { return left.start > right.start }
            return left.id < right.id
        }
    }

    package var listOrder: ListOrder {
        ListOrder(rank: state == .live ? 0 : 1, start: effectiveStart.milliseconds, id: id.description)
    }
}
