import Base
import Stage

/// The gates of streams, as far as viewers' sessions concern them.
extension LiveStreams {
    /// Throws if a viewer lacks the stream's tier and has used up the free time.
    ///
    /// A feed session is always admitted, because it belongs to no stream; it receives nothing of streams that are
    /// shut to it.
    func checkGate(of request: SessionRequest, at now: MonotonicTime) throws(SessionRefusal) {
        guard request.isWatching, request.purpose != .feed, let gate = gates.refusal(of: request, at: now)
        else { return }
        throw .gated(gate)
    }

    /// Registers a viewer of one stream on its seat, which the worker has filled when it opened the session.
    mutating func seatViewer(
        _ id: SessionID, _ request: SessionRequest, at now: MonotonicTime
    ) -> [LiveAction] {
        guard request.isWatching, request.purpose != .feed else { return [] }
        return gates.seat(
            id, pair: 0, on: request.stream, isPreview: false, requested: request.received,
            isLive: self[request.stream]?.isLive == true, isTaken: true, at: now)
    }

    /// Sends a feed session its slots and gates: its control channel has opened, or works again after messages were
    /// lost.
    mutating func greet(_ id: SessionID, at now: MonotonicTime) -> [LiveAction] {
        take(feed.greet(id), at: now) + gates.greet(id, at: now)
    }

    /// Adds a token that a client shows for a session it already has.
    mutating func present(
        _ pass: ViewerGates.Pass, by id: SessionID, at now: MonotonicTime
    ) -> [LiveAction] {
        gates.present(pass, by: id, at: now)
    }
}
