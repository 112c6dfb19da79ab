import Base
import HTTP
import Node
import Recordings
import Stage

/// Recordings of streams: begun and ended by those who run them, seen by those who may watch.
extension GatewayHandler {
    /// `POST .../recording`: begins to record; again, shows what is under way.
    func startRecording(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let stream = try await moderatedStream(request, parameters)
        let (entry, isNew) = try await service.record(stream)
        var response = Self.fresh(entry.json, status: isNew ? 201 : 200)
        if isNew { response.headers.set("Location", "/v1/streams/\(stream)/recordings/\(entry.id)") }
        return response
    }

    /// `DELETE .../recording`: ends it; the answer comes when the file is complete.
    func stopRecording(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let stream = try await moderatedStream(request, parameters)
        return Self.fresh(try await service.stopRecording(stream).json)
    }

    /// `GET .../recordings`.
    func listRecordings(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let stream = try await watched(request, parameters)
        let entries = await service.recordings(of: stream)
        return Self.fresh(.object(["recordings": .array(entries.map(\.json))]))
    }

    /// `DELETE .../recordings/{recording}`.
    func removeRecording(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let stream = try await moderatedStream(request, parameters)
        let entry = try await recording(parameters, of: stream)
        try await service.removeRecording(entry.id, of: stream)
        return HTTPResponse(status: 204)
    }

    /// `GET .../recordings/{recording}`: the file by its name, what is known of it without the extension.
    func showRecording(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let stream = try await watched(request, parameters)
        let entry = try await recording(parameters, of: stream)
        guard parameters["recording"] == entry.fileName else { return Self.fresh(entry.json) }
        guard let path = service.path(of: entry), let part = RecordingPart(path, entry, request) else {
            throw RecordingRefusal.unknownRecording
        }
        return part.response
    }

    // MARK: Who and what

    /// The stream, asked about by somebody who may watch it.
    private func watched(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> StreamID {
        let stream = try Self.stream(parameters)
        let token = try access.requireViewer(request, of: stream)
        guard await service.streamSnapshot(stream) != nil else {
            // A recording may outlive what is known of its stream.
            guard await service.recordings(of: stream).isEmpty else { return stream }
            throw StageRefusal.unknownStream
        }
        guard let sender = token?.sender(in: stream) else { return stream }
        _ = try await service.look(at: stream, as: sender)
        return stream
    }

    private func recording(
        _ parameters: [String: String], of stream: StreamID
    ) async throws -> RecordingEntry {
        let name = parameters["recording"] ?? ""
        let entries = await service.recordings(of: stream)
        guard let entry = entries.first(where: { $0.id == name || $0.fileName == name }) else {
            throw RecordingRefusal.unknownRecording
        }
        return entry
    }
}
