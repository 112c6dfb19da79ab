import Base
import HTTP
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
        let stream = try await watched(call)
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
        let stream = try await watched(call)
        let entry = try await recording(call, of: stream)
        guard call.parameters["recording"] == entry.fileName else { return Self.fresh(json(entry)) }
        guard let path = service.path(of: entry), let part = RecordingPart(path, entry, call.request) else {
            throw RecordingRefusal.unknownRecording
        }
        return part.response
    }

    // MARK: Who and what

    /// The stream, asked about by somebody who may watch it.
    private func watched(_ call: Call) async throws -> StreamID {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        guard await service.streamSnapshot(stream) != nil else {
            // A recording may outlive what is known of its stream.
            guard await service.recordings(of: stream).isEmpty else { return stream }
            throw StageRefusal.unknownStream
        }
        guard let sender = token?.sender(in: stream) else { return stream }
        _ = try await service.look(at: stream, as: sender)
        return stream
    }

    private func json(_ entry: RecordingEntry) -> JSON {
        entry.json(url: settings.paths.recording(entry))
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
