import Base

/// Models how a page of Rostrum reacts to a lost session; time and random numbers are parameters.
///
/// It has the rules and numbers of `persistent.js`, which opens the next session after a growing pause, and of
/// `reconnecting-socket.js`. A page that follows its stream by a WebSocket ends the pause as soon as the socket is open
/// again, and then asks whether the server still has a session that seems to be alive.
struct ReturningPage: Equatable, Sendable {
    enum State: Equatable, Sendable {
        /// It has a session, whose handshake was completed at this time; nil if it was not yet.
        case playing(since: MonotonicTime?)
        /// It waits before it requests the next session.
        case pausing(until: MonotonicTime)
        /// A request for a session is under way.
        case asking
        /// The server refused, and a repetition would not help.
        case refused
    }

    /// What the page does next: request a session, or open its socket.
    enum Action: Equatable, Sendable {
        case connect, openSocket
    }

    private(set) var state = State.playing(since: nil)
    private var pauses = Backoff(first: .milliseconds(400), longest: .seconds(8))
    private var socketPauses = Backoff(first: .milliseconds(500), longest: .seconds(10))
    /// When to try the socket again; nil while it is open.
    private var socketDue: MonotonicTime?
    /// In nanoseconds; after a session that lasted longer, the next pause is short again.
    private static let steady: Int64 = 10_000_000_000

    // MARK: The session

    /// The session's handshake is complete.
    mutating func connected(at now: MonotonicTime) {
        guard case .playing(nil) = state else { return }
        state = .playing(since: now)
    }

    /// The session has ended, though the page did not end it.
    mutating func lost(at now: MonotonicTime, using random: inout some RandomNumberGenerator) {
        guard case .playing(let since) = state else { return }
        if let since, now.nanoseconds(since: since) > Self.steady { pauses.reset() }
        state = .pausing(until: now.advanced(byNanoseconds: pauses.pause(using: &random)))
    }

    /// The server has created a session.
    mutating func made() {
        guard case .asking = state else { return }
        state = .playing(since: nil)
    }

    /// The request for a session has failed.
    mutating func failed(
        _ error: SignallingError, at now: MonotonicTime, using random: inout some RandomNumberGenerator
    ) {
        guard case .asking = state else { return }
        guard error.isTemporary else { return state = .refused }
        let asked = Int64((error.retryAfter ?? 0) * 1e9)
        state = .pausing(until: now.advanced(byNanoseconds: pauses.pause(atLeast: asked, using: &random)))
    }

    // MARK: The socket

    /// The socket was closed by the server, or broke.
    mutating func socketLost(at now: MonotonicTime, using random: inout some RandomNumberGenerator) {
        guard socketDue == nil else { return }
        socketDue = now.advanced(byNanoseconds: socketPauses.pause(using: &random))
    }

    /// The page tried to open its socket.
    /// - Returns: whether to ask the server if it still has the session.
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
        // The server is back, so there is no point in waiting.
        case .pausing: state = .pausing(until: now)
        case .asking, .refused: break
        }
        return false
    }

    // MARK: Time

    /// The actions that are due; a returned `connect` counts as under way.
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
    /// Whether the same request may succeed later, by the rules of `session.js`.
    var isTemporary: Bool {
        switch self {
        case .unreachable: true
        case .refused(let status, _, _): [404, 408, 409, 429].contains(status) || status >= 500
        case .unusable: false
        }
    }

    /// Seconds that the server wants to pass before the next request; nil if it does not say.
    var retryAfter: Double? {
        guard case .refused(_, _, let seconds) = self else { return nil }
        return seconds
    }
}
