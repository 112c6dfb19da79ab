import Base
import Stage
import StoryFeed

/// Gates of streams: what stands between people and programmes.
extension Node {
    /// What stands between somebody and a stream's programme, and what was recorded of it; nil where nothing does.
    /// - Parameter sender: nil for somebody without a name.
    package func gate(
        of stream: StreamID, before sender: Stage.Sender?
    ) async throws(StageRefusal) -> StageDetails.Gate? {
        if let snapshot = directory[stream], snapshot.state != .ended { return snapshot.gate(before: sender) }
        // Lists know less of a stream that ended before this process began.
        let host = try await knownHost(of: stream, isStranger: sender == nil)
        return await host?.snapshot.gate(before: sender)
    }

    /// How a session stands with the gate of what it watches; nil if it watches nothing.
    package func gate(of session: SessionID) -> JSON? {
        live.gates.json(of: session, at: now().elapsed)
    }

    /// Somebody shows another token for a session that they have.
    /// - Parameter scope: the streams in which they are known by it.
    package func show(_ sender: Stage.Sender, in scope: FeedReader.Scope, for session: SessionID) async {
        let pass = ViewerGates.Pass(sender: sender, scope: scope)
        await perform(live.present(pass, by: session, at: now().elapsed))
    }
}
