import Base
import Stage
import Synchronization

/// The latest announced state of every stream, for lists.
///
/// Stream hosts write it. Any thread reads it without waiting for a host's actor.
package final class StreamDirectory: Sendable {
    private struct State {
        var entries: [StreamID: StreamSnapshot] = [:]
        /// The streams' places in lists, sorted.
        ///
        /// Kept sorted because lists are requested more often than places change.
        var order: [StreamSnapshot.ListOrder] = []
        /// Streams that changed since the last `takeNews`.
        var changed: Set<StreamID> = []

        /// Replaces or removes (nil) an entry, and moves its place only if that changed.
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

        /// The index of a place, or the index at which it would be inserted, by binary search.
        func firstIndex(notBefore place: StreamSnapshot.ListOrder) -> Int {
            var (low, high) = (0, order.count)
            while low < high {
                let middle = (low + high) / 2
                if order[middle] < place { low = middle + 1 } else { high = middle }
            }
            return low
        }

        /// Up to `count` streams from an index on, in order.
        func part(from index: Int, count: Int) -> [StreamSnapshot] {
            order[index..<min(index + count, order.count)].compactMap { entries[$0.id] }
        }
    }

    /// A part of the list of streams.
    package struct Page: Sendable {
        /// In the order of the list.
        package let streams: [StreamSnapshot]
        /// Whether the list continues after this part.
        package let isMore: Bool

        package init(streams: [StreamSnapshot], isMore: Bool) {
            self.streams = streams
            self.isMore = isMore
        }
    }

    /// Streams that `page` reads in one critical section.
    ///
    /// Hosts cannot write meanwhile, so it is short.
    private static let partSize = 256

    private let state = Mutex(State())
    /// Yields once when `takeNews` has something to return, however much that is.
    let news: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    /// An empty directory.
    package init() {
        (news, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Replaces a stream's entry with its latest state, and notifies the feed.
    package func update(_ snapshot: StreamSnapshot) {
        state.withLock { state in
            // A stream that was never made, and for which a client waits, must not appear in lists.
            let isKnown = snapshot.state != .waiting || snapshot.createdAt != nil
            state.set(isKnown ? snapshot : nil, of: snapshot.id)
        }
        signal.yield()
    }

    /// Returns the streams that changed since the last call, as they are now; nil for a stream that was removed.
    func takeNews() -> [StreamID: StreamSnapshot?] {
        state.withLock { state in
            defer { state.changed.removeAll() }
            return Dictionary(uniqueKeysWithValues: state.changed.map { ($0, state.entries[$0]) })
        }
    }

    /// Whether the stream's host has banned a participant.
    func isBanned(_ participant: ParticipantID, from stream: StreamID) -> Bool {
        state.withLock { $0.entries[stream]?.banned[participant] != nil }
    }

    /// Whether a participant who is not in the stream yet is kept out: banned, or invited by a link that was revoked
    /// since.
    func shutsOut(_ sender: Stage.Sender, from stream: StreamID) -> Bool {
        state.withLock { $0.entries[stream]?.shutsOut(sender) ?? false }
    }

    /// The gate between a sender and a stream's programme; nil where there is none, or where it is open to the
    /// sender.
    package func gate(of stream: StreamID, before sender: Stage.Sender?) -> StageDetails.Gate? {
        state.withLock { $0.entries[stream]?.gate(before: sender) }
    }

    /// Removes a stream from lists; its record in the store stays.
    package func remove(_ id: StreamID) {
        state.withLock { $0.set(nil, of: id) }
        signal.yield()
    }

    /// Removes old streams that have ended.
    ///
    /// Removes streams that were made by publishing and ended by `time`. Of the others, removes those that ended
    /// first, until `limit` are left. Looks at all streams. A stream stays while something of it is announced that has
    /// to end first: its recording, and that viewers can go back.
    func forgetEnded(by time: WallTime, keeping limit: Int) {
        var ended = everything.filter { $0.state == .ended && !$0.isKept && !$0.isRecording }
        let isOld = ended.partition { $0.isPublished && $0.endedAt.map { $0 <= time } ?? true }
        for stream in ended[isOld...] { forgetEnded(stream.id) }
        ended.removeSubrange(isOld...)
        guard ended.count > limit else { return }
        ended.sort { ($0.endedAt?.milliseconds ?? 0) < ($1.endedAt?.milliseconds ?? 0) }
        for stream in ended.prefix(ended.count - limit) { forgetEnded(stream.id) }
    }

    /// Removes a stream, unless it has begun again in the meantime.
    private func forgetEnded(_ id: StreamID) {
        state.withLock { state in
            if state.entries[id]?.state == .ended { state.set(nil, of: id) }
        }
        signal.yield()
    }

    /// The state as it was announced last; nil for a stream that is not in memory.
    package subscript(_ id: StreamID) -> StreamSnapshot? {
        state.withLock { $0.entries[id] }
    }

    /// All streams, in no order.
    package var everything: [StreamSnapshot] { state.withLock { Array($0.entries.values) } }

    /// Returns a part of the list: live streams first, then by the time of their beginning, newest first, then by
    /// name.
    ///
    /// Streams may change places between two critical sections. The page continues after the last place that it has
    /// read, so no stream appears twice because another one came or went.
    /// - Parameters:
    ///   - place: the last place of the previous part; nil for the first part.
    ///   - limit: streams in the part, at most.
    ///   - isOnlyLive: stop at the first stream that is not live.
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
                // All live streams come first.
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
    /// A stream's place in lists; also the cursor from which a client continues.
    package struct ListOrder: Comparable, Sendable {
        /// 0 for live streams, 1 for all others.
        package let rank: Int
        /// When the stream began or will begin, in milliseconds since 1970; later ones come first.
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

    /// The stream's place in lists.
    package var listOrder: ListOrder {
        ListOrder(rank: state == .live ? 0 : 1, start: effectiveStart.milliseconds, id: id)
    }
}
