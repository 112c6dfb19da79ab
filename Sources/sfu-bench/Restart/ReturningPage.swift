import Base

/// What one of Rostrum's own pages does about a session that it lost; the clock and chance come from outside.
///
/// The same rules and numbers as in `persistent.js`, which opens the next session after a growing pause, and in
/// `reconnecting-socket.js`: a page that follows its stream by a WebSocket ends the pause once that is open again, and
/// asks then whether a session that seems to live is still known to the server.
struct ReturningPage: Equatable, Sendable {
    enum State: Equatable, Sendable {
        /// It has a session; when its handshake was done, if it was.
        case playing(since: MonotonicTime?)
        case pausing(until: MonotonicTime)
        /// A request for a session is under way.
        case asking
        /// The server said no for good.
        case refused
    }

    enum Action: Equatable, Sendable {
        case connect, openSocket
    }

    private(set) var state = State.playing(since: nil)
    private var pauses = Backoff(first: .milliseconds(400), longest: .seconds(8))
    private var socketPauses = Backoff(first: .milliseconds(500), longest: .seconds(10))
    /// When the socket is tried again; nil while it is open.
    private var socketDue: MonotonicTime?
    /// A session that held for longer makes the next pause short again, in nanoseconds.
    private static let steady: Int64 = 10_000_000_000

    // MARK: The session

    /// The handshake is done.
    mutating func connected(at now: MonotonicTime) {
        guard case .playing(nil) = state else { return }
        state = .playing(since: now)
    }

    /// The session is over, and nobody of ours ended it.
    mutating func lost(at now: MonotonicTime, using random: inout some RandomNumberGenerator) {
        guard case .playing(let since) = state else { return }
        if let since, now.nanoseconds(since: since) > Self.steady { pauses.reset() }
        state = .pausing(until: now.advanced(byNanoseconds: pauses.pause(using: &random)))
    }

    /// The server made a session.
    mutating func made() {
        guard case .asking = state else { return }
        state = .playing(since: nil)
    }

    /// It made none.
    mutating func failed(
        _ error: SignallingError, at now: MonotonicTime, using random: inout some RandomNumberGenerator
    ) {
        guard case .asking = state else { return }
        guard error.isTemporary else { return state = .refused }
        let asked = Int64((error.retryAfter ?? 0) * 1e9)
        state = .pausing(until: now.advanced(byNanoseconds: pauses.pause(atLeast: asked, using: &random)))
    }

    // MARK: The socket

    mutating func socketLost(at now: MonotonicTime, using random: inout some RandomNumberGenerator) {
        guard socketDue == nil else { return }
        socketDue = now.advanced(byNanoseconds: socketPauses.pause(using: &random))
    }

    /// The socket was tried.
    /// - Returns: whether the server is to be asked if it knows the session.
    mutating func socketTried(
        isTaken: Bool, at now: MonotonicTime, using random: inout some RandomNumberGenerator
    ) -> Bool {
        guard isTaken else {
            socketDue = now.advanced(byNanoseconds: socketPauses.pause(using: &random))
            return false
        }
        socketDue = nil
        socketPauses.reset()
        switch state {
        case .playing: return true
        case .pausing: state = .pausing(until: now)
        case .asking, .refused: break
        }
        return false
    }

    // MARK: Time

    /// What is to be done now; a connection counts as begun.
    mutating func actions(at now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        if let socketDue, socketDue <= now { actions.append(.openSocket) }
        if case .pausing(let end) = state, end <= now {
            state = .asking
            actions.append(.connect)
        }
        return actions
    }
}

extension SignallingError {
    /// Whether the same request may succeed later, as `session.js` has it.
    var isTemporary: Bool {
        switch self {
        case .unreachable: true
        case .refused(let status, _, _): [404, 408, 409, 429].contains(status) || status >= 500
        case .unusable: false
        }
    }

    /// How long the server wants to be left alone, in seconds; nil if it does not say.
    var retryAfter: Double? {
        guard case .refused(_, _, let seconds) = self else { return nil }
        return seconds
    }
}
