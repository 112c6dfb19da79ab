import Base
import HTTP
import Synchronization

/// The open event streams, limited in total, per session and per address.
final class EventStreams: Sendable {
    /// Limit in total; each stream costs its workers two queries a second.
    static let limit = 1_024
    /// Limit per session: one in use, and one whose connection was lost without the server noticing yet.
    static let limitPerSession = 2
    /// Limit for one IPv4 address or one IPv6 network: half of all, so that nobody takes all places, which need no
    /// token where viewers are public.
    static let limitPerAddress = limit / 2

    /// An open stream.
    private struct Entry {
        /// Identifies the entry when its place is released.
        let number: UInt64
        /// Weak, because the stream's release is what frees the place.
        weak var stream: HTTPStream?
    }

    private struct State {
        var entries: [SessionID: [Entry]] = [:]
        /// Streams in total, including those that are about to be stored.
        var count = 0
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())
    private let quota = ConnectionQuota(total: .max, perAddress: limitPerAddress, share: limitPerAddress)

    /// Opens a stream; if its session is at the limit, the session's oldest one ends.
    ///
    /// A player that reconnects from another network would otherwise wait until its dead streams time out.
    /// - Parameters:
    ///   - client: the address to count it for; nil or loopback, where a proxy may be, counts for no address.
    ///   - produce: produces the body.
    /// - Returns: nil if the total limit or the address's is reached.
    func open(
        of session: SessionID, for client: IPAddress? = nil,
        produce: @escaping @Sendable (HTTPStream) async -> Void
    ) -> HTTPStream? {
        let address = client.flatMap { $0.isLoopback ? nil : $0 }
        let isCounted = address.map { quota.take($0) } ?? false
        let isRefused = address != nil && !isCounted
        let number = state.withLock { state -> UInt64? in
            let isReplacing = (state.entries[session]?.count ?? 0) >= Self.limitPerSession
            guard state.count < Self.limit && !isRefused || isReplacing else { return nil }
            state.count += 1
            state.lastNumber += 1
            return state.lastNumber
        }
        guard let number else {
            if let address, isCounted { quota.giveBack(address) }
            return nil
        }
        // Counted as well, because a place for which nobody is counted would be one more with each replacement.
        if let address, isRefused { quota.add(address) }
        // The place is released with the closure, whether the stream is ever sent or not.
        let place = Place { [self] in
            leave(number, of: session)
            if let address { quota.giveBack(address) }
        }
        let stream = HTTPStream { stream in
            await produce(stream)
            withExtendedLifetime(place) {}
        }
        let eldest = state.withLock { state -> HTTPStream? in
            state.entries[session, default: []].append(Entry(number: number, stream: stream))
            guard let entries = state.entries[session], entries.count > Self.limitPerSession else {
                return nil
            }
            state.count -= 1
            return state.entries[session]?.removeFirst().stream
        }
        eldest?.finish()
        return stream
    }

    /// Releases a place; does nothing for a stream that a newer one has replaced.
    private func leave(_ number: UInt64, of session: SessionID) {
        state.withLock { state in
            guard let index = state.entries[session]?.firstIndex(where: { $0.number == number }) else {
                return
            }
            state.entries[session]?.remove(at: index)
            if state.entries[session]?.isEmpty == true { state.entries[session] = nil }
            state.count -= 1
        }
    }

    /// Open streams in total.
    var count: Int { state.withLock { $0.count } }

    /// Open streams of one session.
    func count(of session: SessionID) -> Int { state.withLock { $0.entries[session]?.count ?? 0 } }

    /// Calls a closure when its last reference is gone.
    private final class Place: Sendable {
        private let leave: @Sendable () -> Void

        init(_ leave: @escaping @Sendable () -> Void) {
            self.leave = leave
        }

        deinit { leave() }
    }
}
