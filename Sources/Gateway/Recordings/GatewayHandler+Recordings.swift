import Base
import HTTP
import Interaction
import Node
import Recordings
import Stage

/// Recordings of streams: begun and ended by those who run them, seen by those who may watch.
extension GatewayHandler {
    /// `POST .../recording`: begins to record; again, shows what is under way.
    func startRecording(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        let (entry, isNew) = try await service.record(stream)
        var response = Self.fresh(json(entry), status: isNew ? 201 : 200)
        if isNew { response.headers.set("Location", ResourcePaths.recording(entry.id, of: stream)) }
        return response
    }

    /// `DELETE .../recording`: ends it; the answer comes when the file is complete.
    func stopRecording(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        return Self.fresh(json(try await service.stopRecording(stream)))
    }

    /// `GET .../recordings`.
    func listRecordings(_ call: Call) async throws -> HTTPResponse {
        let (stream, _) = try await watched(call)
        let entries = await service.recordings(of: stream)
        return Self.fresh(.object(["recordings": .array(entries.map(json))]))
    }

    /// `DELETE .../recordings/{recording}`.
    func removeRecording(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        let entry = try await recording(call, of: stream)
        try await service.removeRecording(entry.id, of: stream)
        return HTTPResponse(status: 204)
    }

    /// `GET .../recordings/{recording}`: the file by its name, what is known of it without the extension.
    func showRecording(_ call: Call) async throws -> HTTPResponse {
        let (stream, sender) = try await watched(call)
        let entry = try await recording(call, of: stream)
        guard call.parameters["recording"] == entry.fileName else { return Self.fresh(json(entry)) }
        try await requireOpenGate(of: entry, in: stream, before: sender)
        guard let path = service.readingPath(of: entry), let part = RecordingPart(path, entry, call.request)
        else {
            throw RecordingRefusal.unknownRecording
        }
        return part.response
    }

    /// `GET .../recordings/{recording}/comments`.
    func listRecordedComments(_ call: Call) async throws -> HTTPResponse {
        let (stream, _) = try await watched(call)
        let entry = try await recording(call, of: stream)
        let after = try number("after", of: call) ?? 0
        let limit = try number("limit", of: call) ?? Self.usualPage
        guard (1...Self.longestPage).contains(limit) else { throw Interaction.Refusal.invalid("limit") }
        return Self.fresh(try await service.comments(on: entry, after: after, limit: limit))
    }

    // MARK: Who and what

    /// The stream, asked about by somebody who may watch it.
    private func watched(_ call: Call) async throws -> (stream: StreamID, sender: Stage.Sender?) {
        let stream = try call.stream
        let sender = try call.access.requireViewer(of: stream)?.sender(in: stream)
        guard await service.streamSnapshot(stream) != nil else {
            // A recording may outlive what is known of its stream.
            guard await service.recordings(of: stream).isEmpty else { return (stream, sender) }
            throw StageRefusal.unknownStream
        }
        if let sender { _ = try await service.look(at: stream, as: sender) }
        return (stream, sender)
    }

    /// Refuses the file of what one may not see: as the stream says now, or, where nothing is known of it any more, as
    /// it was when the recording began.
    func requireOpenGate(
        of entry: RecordingEntry, in stream: StreamID, before sender: Stage.Sender?
    ) async throws {
        guard await service.streamSnapshot(stream) == nil else {
            return try await requireOpenGate(of: stream, before: sender)
        }
        guard let tier = entry.tier else { return }
        let gate = StageDetails.Gate(tier: tier)
        guard gate.admits(sender, isOnStage: false) else { throw gate.problem }
    }

    private func json(_ entry: RecordingEntry) -> JSON {
        entry.json(url: settings.paths.recording(entry), hls: settings.paths.playlist(of: entry))
    }

    private func recording(_ call: Call, of stream: StreamID) async throws -> RecordingEntry {
        let name = call.parameters["recording"] ?? ""
        let entries = await service.recordings(of: stream)
        guard let entry = entries.first(where: { $0.id == name || $0.fileName == name }) else {
            throw RecordingRefusal.unknownRecording
        }
        return entry
    }
}
