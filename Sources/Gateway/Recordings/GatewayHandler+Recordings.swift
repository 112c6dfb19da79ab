import Base
import HTTP
import Interaction
import Node
import Recordings
import Stage

/// Recordings: controlled by the stream's host and admins, visible to its viewers.
extension GatewayHandler {
    /// `POST .../recording`: starts to record, 201; returns the recording under way if there is one, 200.
    func startRecording(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        // Repeating the request is harmless, as for a button that is pressed twice.
        let (entry, isNew) = try await service.record(stream)
        var response = Self.fresh(json(entry), status: isNew ? 201 : 200)
        if isNew { response.headers.set("Location", ResourcePaths.recording(entry.id, of: stream)) }
        return response
    }

    /// `DELETE .../recording`: stops recording; answers when the file is complete.
    func stopRecording(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        return Self.fresh(json(try await service.stopRecording(stream)))
    }

    /// `GET .../recordings`: all recordings and clips of the stream, with those under way.
    func listRecordings(_ call: Call) async throws -> HTTPResponse {
        let (stream, _) = try await watched(call)
        let entries = await service.recordings(of: stream)
        return Self.fresh(.object(["recordings": .array(entries.map(json))]))
    }

    /// `DELETE .../recordings/{recording}`: removes a recording that has ended, with its file.
    func removeRecording(_ call: Call) async throws -> HTTPResponse {
        let stream = try await moderatedStream(call)
        let entry = try await recording(call, of: stream)
        try await service.removeRecording(entry.id, of: stream)
        return HTTPResponse(status: 204)
    }

    /// `GET .../recordings/{recording}`: the file for its name, its description for the id without extension.
    func showRecording(_ call: Call) async throws -> HTTPResponse {
        let (stream, sender) = try await watched(call)
        let entry = try await recording(call, of: stream)
        // The gate protects the file; the description may be seen by everyone who may see the stream.
        guard call.parameters["recording"] == entry.fileName else { return Self.fresh(json(entry)) }
        try await requireOpenGate(of: entry, in: stream, before: sender)
        guard let path = service.readingPath(of: entry), let part = RecordingPart(path, entry, call.request)
        else {
            throw RecordingRefusal.unknownRecording
        }
        return part.response
    }

    /// `GET .../recordings/{recording}/comments`: comments written while it was recorded, by their time in it.
    func listRecordedComments(_ call: Call) async throws -> HTTPResponse {
        let (stream, _) = try await watched(call)
        let entry = try await recording(call, of: stream)
        let after = try number("after", of: call) ?? 0
        let limit = try number("limit", of: call) ?? Self.usualPage
        guard (1...Self.longestPage).contains(limit) else { throw Interaction.Refusal.invalid("limit") }
        return Self.fresh(try await service.comments(on: entry, after: after, limit: limit))
    }

    // MARK: Who and what

    /// The stream in the path and the viewer, after all checks except for the gate.
    private func watched(_ call: Call) async throws -> (stream: StreamID, sender: Stage.Sender?) {
        let stream = try call.stream
        let sender = try call.access.requireViewer(of: stream)?.sender(in: stream)
        guard await service.streamSnapshot(stream) != nil else {
            // Recordings may be kept longer than their stream's record.
            guard await service.recordings(of: stream).isEmpty else { return (stream, sender) }
            throw StageRefusal.unknownStream
        }
        if let sender { _ = try await service.look(at: stream, as: sender) }
        return (stream, sender)
    }

    /// Throws the gate's problem if the sender may not see a recording: the stream's present gate, or, if the stream
    /// is not known any more, the one with which the recording began.
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

    /// A recording's description with its addresses.
    private func json(_ entry: RecordingEntry) -> JSON {
        entry.json(url: settings.paths.recording(entry), hls: settings.paths.playlist(of: entry))
    }

    /// The recording in the path, by id or by file name.
    private func recording(_ call: Call, of stream: StreamID) async throws -> RecordingEntry {
        let name = call.parameters["recording"] ?? ""
        let entries = await service.recordings(of: stream)
        guard let entry = entries.first(where: { $0.id == name || $0.fileName == name }) else {
            throw RecordingRefusal.unknownRecording
        }
        return entry
    }
}
