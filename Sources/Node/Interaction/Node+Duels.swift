import Base
import Interaction
import Stage

/// Duels: messages between two streams pass through here, as they would between two machines.
extension Node {
    /// Applies a host's command, and returns once the change is durable in that host's stream.
    ///
    /// The opponent's stream is notified after that.
    package func perform(
        _ command: DuelSide.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON {
        var isOpponentLive = true
        if case .invite(let opponent, _) = command { isOpponentLive = directory[opponent]?.state == .live }
        return try await madeHost(of: stream)
            .perform(command, from: sender, isOpponentLive: isOpponentLive)
    }

    /// The two streams of a duel.
    package func sides(of duel: DuelID) async throws(StageRefusal) -> (from: StreamID, to: StreamID) {
        guard let host = try await knownHost(of: duel.inviter) else { throw .interaction(.unknownDuel) }
        return try await host.sides(of: duel)
    }

    /// A duel as one of its streams knows it.
    package func duel(
        _ duel: DuelID, of stream: StreamID, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON {
        try await madeHost(of: stream).duel(duel, as: sender)
    }

    /// Performs what a stream wants outside itself because of a duel.
    func take(_ order: DuelOrder) async {
        switch order {
        case .show(let opponent, let stream):
            await perform(live.setOpponent(opponent, of: stream, at: now().elapsed))
        case .message(let message):
            do throws(StageRefusal) {
                try await madeHost(of: message.to).receive(message)
            } catch {
                // Not an error: the sender repeats the message.
                log.debug("duel.undelivered", ["duel": message.id, "to": message.to, "error": "\(error)"])
            }
        }
    }
}
