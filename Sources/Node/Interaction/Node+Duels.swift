import Base
import Interaction
import Stage

/// Duels: what one stream tells another goes through here, as it would from machine to machine.
extension Node {
    /// Does what a host wants, once that is durable in that host's stream; the other one hears of it then.
    package func perform(
        _ command: DuelSide.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON {
        var isOpponentLive = true
        if case .invite(let opponent, _) = command { isOpponentLive = directory[opponent]?.state == .live }
        return try await madeHost(of: stream)
            .perform(command, from: sender, isOpponentLive: isOpponentLive)
    }

    /// Which streams a duel is between.
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

    func take(_ order: DuelOrder) async {
        switch order {
        case .show(let opponent, let stream):
            await perform(live.setOpponent(opponent, of: stream, at: now().elapsed))
        case .message(let message):
            do throws(StageRefusal) {
                try await madeHost(of: message.to).receive(message)
            } catch {
                // It is said again.
                log.debug("duel.undelivered", ["duel": message.id, "to": message.to, "error": "\(error)"])
            }
        }
    }
}
