import Base
import Synchronization

/// What is known of every stream, for lists: hosts write it, anybody reads it without waiting for a host.
package final class StreamDirectory: Sendable {
    private let entries = Mutex<[StreamID: StreamSnapshot]>([:])

    package init() {}

    package func update(_ snapshot: StreamSnapshot) {
        entries.withLock { entries in
            // Somebody who waits for a stream that nobody made does not put it into the lists.
            if snapshot.state == .waiting, snapshot.createdAt == nil {
                entries[snapshot.id] = nil
            } else {
                entries[snapshot.id] = snapshot
            }
        }
    }

    package func remove(_ id: StreamID) {
        entries.withLock { $0[id] = nil }
    }

    package subscript(_ id: StreamID) -> StreamSnapshot? {
        entries.withLock { $0[id] }
    }

    /// Live streams first, then by the time they began or will begin, newest first; ties by name.
    package var all: [StreamSnapshot] {
        entries.withLock { Array($0.values) }.sorted { $0.listOrder < $1.listOrder }
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
