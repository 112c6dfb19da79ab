import Base
import Stage
import Synchronization

/// What is known of every stream, for lists: hosts write it, anybody reads it without waiting for a host.
package final class StreamDirectory: Sendable {
    private struct State {
        var entries: [StreamID: StreamSnapshot] = [:]
        /// Where each of them stands in lists, in order: lists are asked for more often than places change.
        var order: [StreamSnapshot.ListOrder] = []
        /// Changed since the last `takeNews`.
        var changed: Set<StreamID> = []

        mutating func set(_ snapshot: StreamSnapshot?, of id: StreamID) {
            let (before, after) = (entries[id]?.listOrder, snapshot?.listOrder)
            entries[id] = snapshot
            changed.insert(id)
            guard before != after else { return }
            if let before {
                let index = firstIndex(notBefore: before)
                if order.indices.contains(index), order[index] == before { order.remove(at: index) }
            }
            if let after { order.insert(after, at: firstIndex(notBefore: after)) }
        }

        /// Where a place is, or would be.
        func firstIndex(notBefore place: StreamSnapshot.ListOrder) -> Int {
            var (low, high) = (0, order.count)
            while low < high {
                let middle = (low + high) / 2
                if order[middle] < place { low = middle + 1 } else { high = middle }
            }
            return low
        }

        /// So many of the list from there on, in order.
        func part(from index: Int, count: Int) -> [StreamSnapshot] {
            order[index..<min(index + count, order.count)].compactMap { entries[$0.id] }
        }
    }

    /// A part of the list.
    package struct Page: Sendable {
        /// In the order of the list.
        package let streams: [StreamSnapshot]
        /// Whether there is more behind it.
        package let isMore: Bool

        package init(streams: [StreamSnapshot], isMore: Bool) {
            self.streams = streams
            self.isMore = isMore
        }
    }

    /// Streams that are looked at while nobody can change them.
    private static let partSize = 256

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
            state.set(isKnown ? snapshot : nil, of: snapshot.id)
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

    /// Whether somebody who is not there yet is kept out: banned, or come by a link that was revoked since.
    func shutsOut(_ sender: Stage.Sender, from stream: StreamID) -> Bool {
        state.withLock { state in
            guard let entry = state.entries[stream] else { return false }
            let isRevoked = sender.link.map { !entry.linkRevocations.allows($0) } ?? false
            return isRevoked || entry.banned[sender.id] != nil
        }
    }

    /// What stands between somebody and a stream's programme; nil where nothing does.
    package func gate(of stream: StreamID, before sender: Stage.Sender?) -> StageDetails.Gate? {
        state.withLock { $0.entries[stream]?.gate(before: sender) }
    }

    /// Forgets a stream; its record in the store stays.
    package func remove(_ id: StreamID) {
        state.withLock { $0.set(nil, of: id) }
        signal.yield()
    }

    /// Forgets ended streams that were made by publishing and ended by then, and, beyond so many, those that ended
    /// first.
    ///
    /// Looks at all of them.
    func forgetEnded(by time: WallTime, keeping limit: Int) {
        var ended = everything.filter { $0.state == .ended }
        let isOld = ended.partition { $0.isPublished && $0.endedAt.map { $0 <= time } ?? true }
        for stream in ended[isOld...] { forgetEnded(stream.id) }
        ended.removeSubrange(isOld...)
        guard ended.count > limit else { return }
        ended.sort { ($0.endedAt?.milliseconds ?? 0) < ($1.endedAt?.milliseconds ?? 0) }
        for stream in ended.prefix(ended.count - limit) { forgetEnded(stream.id) }
    }

    /// It may have begun anew meanwhile.
    private func forgetEnded(_ id: StreamID) {
        state.withLock { state in
            if state.entries[id]?.state == .ended { state.set(nil, of: id) }
        }
        signal.yield()
    }

    /// As it was announced last; nil for a stream that is not in memory.
    package subscript(_ id: StreamID) -> StreamSnapshot? {
        state.withLock { $0.entries[id] }
    }

    /// In no order.
    package var everything: [StreamSnapshot] { state.withLock { Array($0.entries.values) } }

    /// A part of the list: live streams first, then by the time they began or will begin, newest first; ties by name.
    /// - Parameters:
    ///   - place: what the part before ended with; nil for the first one.
    ///   - limit: streams in it, at most.
    ///   - isOnlyLive: whether no others are wanted, so that it need not be looked for them.
    package func page(
        after place: StreamSnapshot.ListOrder?, limit: Int, isOnlyLive: Bool = false,
        where isWanted: (StreamSnapshot) -> Bool
    ) -> Page {
        var found: [StreamSnapshot] = []
        var last = place
        while true {
            let part = state.withLock { [last] state in
                var index = last.map { state.firstIndex(notBefore: $0) } ?? 0
                if let last, state.order.indices.contains(index), state.order[index] == last { index += 1 }
                return state.part(from: index, count: Self.partSize)
            }
            for stream in part {
                if isOnlyLive, stream.state != .live { return Page(streams: found, isMore: false) }
                guard isWanted(stream) else { continue }
                guard found.count < limit else { return Page(streams: found, isMore: true) }
                found.append(stream)
            }
            guard let end = part.last else { return Page(streams: found, isMore: false) }
            last = end.listOrder
        }
    }
}

extension StreamSnapshot {
    /// Where a stream stands in lists.
    package struct ListOrder: Comparable, Sendable {
        package let rank: Int
        package let start: Int64
        package let id: StreamID

        package init(rank: Int, start: Int64, id: StreamID) {
            self.rank = rank
            self.start = start
            self.id = id
        }

        package static func < (left: ListOrder, right: ListOrder) -> Bool {
            if left.rank != right.rank { return left.rank < right.rank }
            if left.start != right.start { return left.start > right.start }
            return left.id.description < right.id.description
        }
    }

    package var listOrder: ListOrder {
        ListOrder(rank: state == .live ? 0 : 1, start: effectiveStart.milliseconds, id: id)
    }
}
