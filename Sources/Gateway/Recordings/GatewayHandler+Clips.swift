import Base
import HTTP
import Interaction
import Node
import Recordings
import Stage

/// Clips of the last seconds of a live stream.
extension GatewayHandler {
    /// `POST .../clips`: makes a clip; for the host and moderators, and for other participants if the stream's
    /// settings allow it.
    ///
    /// Answers 201 before the clip is complete; its state is then found under `Location`.
    func makeClip(_ call: Call) async throws -> HTTPResponse {
        let (stream, _, sender) = try call.sender()
        try await requireClips(of: stream, for: sender)
        let body = try call.body(isOptional: true)
        let seconds = try body.integer("seconds") ?? ClipDesk.usualLength
        guard ClipDesk.lengths.contains(seconds) else { throw Self.invalidLength }
        let title = try body.string("title")
        if let title, !StageDetails.isTitle(title) { throw JSONBody.invalid("title") }
        let entry = try await service.makeClip(of: stream, seconds: seconds, title: title)
        var response = Self.fresh(entry.json(url: nil, hls: nil), status: 201)
        response.headers.set("Location", ResourcePaths.recording(entry.id, of: stream))
        return response
    }

    /// Throws if the sender may not make clips.
    private func requireClips(of stream: StreamID, for sender: Stage.Sender) async throws {
        let you = try await service.look(at: stream, as: sender).you
        guard !you.isModerator, !you.mayModerate else { return }
        guard await service.streamSnapshot(stream)?.details.clips == .everybody else {
            throw Interaction.Refusal.notModerator
        }
        // A clip would otherwise show what the gate hides.
        try await requireOpenGate(of: stream, before: sender)
    }

    private static var invalidLength: Problem {
        let (least, most) = (ClipDesk.lengths.lowerBound, ClipDesk.lengths.upperBound)
        var problem = Problem(
            422, "invalid-field", "seconds must be a whole number from \(least) to \(most).")
        problem.members["field"] = .string("seconds")
        return problem
    }
}
