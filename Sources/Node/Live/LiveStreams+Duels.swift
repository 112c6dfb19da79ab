import Base
import Forwarding
import Peer

/// Streams in a duel: each shows the other's host too.
extension LiveStreams {
    /// Has a stream show the host of another one beside its own, from now on; nil for nobody.
    mutating func setOpponent(
        _ opponent: StreamID?, of stream: StreamID, at now: MonotonicTime
    ) -> [LiveAction] {
        opponents[stream] = opponent
        return refreshGuest(of: stream, at: now)
    }

    /// In an order that is the same in each run.
    private func streams(showing opponent: StreamID) -> [StreamID] {
        guard !opponents.isEmpty else { return [] }
        return opponents.filter { $0.value == opponent }.keys.sorted { $0.description < $1.description }
    }

    /// Tells others how the host of a stream is now.
    mutating func refreshGuests(outOf stream: StreamID, at now: MonotonicTime) -> [LiveAction] {
        streams(showing: stream).flatMap { refreshGuest(of: $0, at: now) }
    }

    private mutating func refreshGuest(of stream: StreamID, at now: MonotonicTime) -> [LiveAction] {
        let guest = opponents[stream].flatMap { self.guest(from: $0) }
        return alter(stream, at: now) { $0.setGuest(guest) }
    }

    /// The host of a stream as others show them, under a name that nobody of those has.
    private func guest(from stream: StreamID) -> StageGuest? {
        guard let session = self[stream]?.publisher, let record = sessions[session],
            let own = record.request.participant,
            let participant = ParticipantID("\(own)@\(stream)") ?? ParticipantID("@\(stream)")
        else { return nil }
        return self[stream]?.room?.guest(session, as: participant, sources: record.plan.sources)
    }

    /// How loud the host of a stream is, for those who show them.
    mutating func tellVoice(_ event: WorkerEvent, of stream: StreamID, at now: MonotonicTime) -> [LiveAction]
    {
        guard case .voice = event else { return [] }
        return streams(showing: stream).flatMap { other in
            alter(other, at: now) { $0.receive(event) }
        }
    }
}
