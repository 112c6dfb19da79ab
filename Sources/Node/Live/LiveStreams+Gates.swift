import Base
import Stage

/// Gates of streams, before those who watch.
extension LiveStreams {
    /// Whether somebody who lacks a stream's tier may still watch some of it.
    ///
    /// A feed session belongs to no stream: it may be there, and is given nothing of the streams that are shut to it.
    func checkGate(of request: SessionRequest, at now: MonotonicTime) throws(SessionRefusal) {
        guard request.isWatching, request.purpose != .feed, let gate = gates.refusal(of: request, at: now)
        else { return }
        throw .gated(gate)
    }

    /// Puts whoever watches one stream on it, as its worker has done.
    mutating func seatViewer(
        _ id: SessionID, _ request: SessionRequest, at now: MonotonicTime
    ) -> [LiveAction] {
        guard request.isWatching, request.purpose != .feed else { return [] }
        return gates.seat(
            id, pair: 0, on: request.stream, isPreview: false, requested: request.received,
            isLive: self[request.stream]?.isLive == true, isTaken: true, at: now)
    }

    /// A feed session's control channel has opened, or works again after messages were lost.
    mutating func greet(_ id: SessionID, at now: MonotonicTime) -> [LiveAction] {
        take(feed.greet(id), at: now) + gates.greet(id, at: now)
    }

    /// Somebody shows another token for a session that they have.
    mutating func present(
        _ pass: ViewerGates.Pass, by id: SessionID, at now: MonotonicTime
    ) -> [LiveAction] {
        gates.present(pass, by: id, at: now)
    }
}
