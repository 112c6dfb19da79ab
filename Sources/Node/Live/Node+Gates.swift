import Base
import Stage
import StoryFeed

/// The gates of streams, which keep viewers without a tier from programmes.
extension Node {
    /// The gate that keeps a viewer from a stream's programme and its recordings; nil if there is none or it is open.
    /// - Parameter sender: nil for an anonymous viewer.
    package func gate(
        of stream: StreamID, before sender: Stage.Sender?
    ) async throws(StageRefusal) -> StageDetails.Gate? {
        if let snapshot = directory[stream], snapshot.state != .ended { return snapshot.gate(before: sender) }
        // The directory knows less of a stream that ended before this process started, so the store is asked.
        let host = try await knownHost(of: stream, isStranger: sender == nil)
        return await host?.snapshot.gate(before: sender)
    }

    /// The state of the gate of the stream that a session watches; nil if it is not a viewer's session.
    package func gate(of session: SessionID) -> JSON? {
        live.gates.json(of: session, at: now().elapsed)
    }

    /// Adds a token that a client shows for a session it already has.
    /// - Parameter scope: the streams for which the token counts.
    package func show(_ sender: Stage.Sender, in scope: FeedReader.Scope, for session: SessionID) async {
        let pass = ViewerGates.Pass(sender: sender, scope: scope)
        await perform(live.present(pass, by: session, at: now().elapsed))
    }
}
