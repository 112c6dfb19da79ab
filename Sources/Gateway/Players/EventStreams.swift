import Base
import HTTP
import Synchronization

/// The event streams that are open: as many as there may be in all, and of each session.
final class EventStreams: Sendable {
    /// Each costs its workers two questions a second.
    static let limit = 1_024
    /// One that is used, and one whose connection was lost without a word.
    static let limitPerSession = 2

    private struct Entry {
        let number: UInt64
        weak var stream: HTTPStream?
    }

    private struct State {
        var entries: [SessionID: [Entry]] = [:]
        var count = 0
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Makes one more; of a session with as many as it may have, the eldest ends: a player that comes back from another
    /// network would have to wait for those to end that nobody reads.
    /// - Parameter produce: makes its body.
    /// - Returns: nil where there are too many.
    func open(
        of session: SessionID, produce: @escaping @Sendable (HTTPStream) async -> Void
    ) -> HTTPStream? {
        let number = state.withLock { state -> UInt64? in
            let isReplacing = (state.entries[session]?.count ?? 0) >= Self.limitPerSession
            guard state.count < Self.limit || isReplacing else { return nil }
            state.count += 1
            state.lastNumber += 1
            return state.lastNumber
        }
        guard let number else { return nil }
        // Whether it is ever sent or not: the place is free again when nobody holds it any more.
        let place = Place { [self] in leave(number, of: session) }
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

    /// How many there are.
    var count: Int { state.withLock { $0.count } }

    /// Of one session.
    func count(of session: SessionID) -> Int { state.withLock { $0.entries[session]?.count ?? 0 } }

    private final class Place: Sendable {
        private let leave: @Sendable () -> Void

        init(_ leave: @escaping @Sendable () -> Void) {
            self.leave = leave
        }

        deinit { leave() }
    }
}
