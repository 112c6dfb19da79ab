import Base
import Forwarding
import Peer

/// Streams in a duel: each also shows the other stream's host.
extension LiveStreams {
    /// Makes a stream show the host of an opponent beside its own; nil for no opponent.
    mutating func setOpponent(
        _ opponent: StreamID?, of stream: StreamID, at now: MonotonicTime
    ) -> [LiveAction] {
        opponents[stream] = opponent
        return refreshGuest(of: stream, at: now)
    }

    /// The streams that show a stream's host, in an order that is the same in each run.
    private func streams(showing opponent: StreamID) -> [StreamID] {
        guard !opponents.isEmpty else { return [] }
        return opponents.filter { $0.value == opponent }.keys.sorted { $0.description < $1.description }
    }

    /// Updates the guest on other stages after the stage of the guest's own stream has changed.
    mutating func refreshGuests(outOf stream: StreamID, at now: MonotonicTime) -> [LiveAction] {
        streams(showing: stream).flatMap { refreshGuest(of: $0, at: now) }
    }

    /// Updates the guest on a stage.
    ///
    /// Uses `alter`, because `conduct` would update the other stream's guest in turn.
    private mutating func refreshGuest(of stream: StreamID, at now: MonotonicTime) -> [LiveAction] {
        let guest = opponents[stream].flatMap { self.guest(from: $0) }
        return alter(stream, at: now) { $0.setGuest(guest) }
    }

    /// The host of a stream as a guest on other stages.
    ///
    /// The identity contains the stream's name, so that it differs from all identities on the other stage.
    private func guest(from stream: StreamID) -> StageGuest? {
        guard let session = self[stream]?.publisher, let record = sessions[session],
            let own = record.request.participant,
            let participant = ParticipantID("\(own)@\(stream)") ?? ParticipantID("@\(stream)")
        else { return nil }
        return self[stream]?.room?.guest(session, as: participant, sources: record.plan.sources)
    }

    /// Passes the loudness of a stream's host to the stages that show this host.
    mutating func tellVoice(_ event: WorkerEvent, of stream: StreamID, at now: MonotonicTime) -> [LiveAction]
    {
        guard case .voice = event else { return [] }
        return streams(showing: stream).flatMap { other in
            alter(other, at: now) { $0.receive(event) }
        }
    }
}
