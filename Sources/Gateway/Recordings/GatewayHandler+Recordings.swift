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
    ) async throws(Problem) -> HTTPResponse {
        let stream = try await moderated(request, parameters)
        do throws(RecordingRefusal) {
            let (entry, isNew) = try await service.record(stream)
            var response = Self.fresh(entry.json, status: isNew ? 201 : 200)
            if isNew { response.headers.set("Location", "/v1/streams/\(stream)/recordings/\(entry.id)") }
            return response
        } catch {
            throw Problem(error)
        }
    }

    /// `DELETE .../recording`: ends it; the answer comes when the file is complete.
    func stopRecording(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws(Problem) -> HTTPResponse {
        let stream = try await moderated(request, parameters)
        do throws(RecordingRefusal) {
            return Self.fresh(try await service.stopRecording(stream).json)
        } catch {
            throw Problem(error)
        }
    }

    /// `GET .../recordings`.
    func listRecordings(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws(Problem) -> HTTPResponse {
        let stream = try await watched(request, parameters)
        let entries = await service.recordings(of: stream)
        return Self.fresh(.object(["recordings": .array(entries.map(\.json))]))
    }

    /// `DELETE .../recordings/{recording}`.
    func removeRecording(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws(Problem) -> HTTPResponse {
        let stream = try await moderated(request, parameters)
        let entry = try await recording(parameters, of: stream)
        do throws(RecordingRefusal) {
            try await service.removeRecording(entry.id, of: stream)
        } catch {
            throw Problem(error)
        }
        return HTTPResponse(status: 204)
    }

    /// `GET .../recordings/{recording}`: the file by its name, what is known of it without the extension.
    func showRecording(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws(Problem) -> HTTPResponse {
        let stream = try await watched(request, parameters)
        let entry = try await recording(parameters, of: stream)
        guard parameters["recording"] == entry.fileName else { return Self.fresh(entry.json) }
        guard let path = service.path(of: entry), let part = RecordingPart(path, entry, request) else {
            throw Problem(404, "unknown-recording", "There is no such recording.")
        }
        return part.response
    }

    // MARK: Who and what

    /// The stream, asked about by somebody who runs it.
    private func moderated(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws(Problem) -> StreamID {
        let stream = try Self.stream(parameters)
        let token = try access.requireParticipant(request, of: stream)
        guard let sender = token.sender(in: stream) else {
            throw Access.otherStream
        }
        do throws(StageRefusal) {
            guard try await service.look(at: stream, as: sender).you.isModerator else {
                throw StageRefusal.rejected(.notHost)
            }
        } catch {
            throw Problem(error)
        }
        return stream
    }

    /// The stream, asked about by somebody who may watch it.
    private func watched(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws(Problem) -> StreamID {
        let stream = try Self.stream(parameters)
        let token = try access.requireViewer(request, of: stream)
        guard await service.streamSnapshot(stream) != nil else {
            // A recording may outlive what is known of its stream.
            guard await service.recordings(of: stream).isEmpty else { return stream }
            throw Problem(StageRefusal.unknownStream)
        }
        guard let sender = token?.sender(in: stream) else { return stream }
        do throws(StageRefusal) {
            _ = try await service.look(at: stream, as: sender)
        } catch {
            throw Problem(error)
        }
        return stream
    }

    private func recording(
        _ parameters: [String: String], of stream: StreamID
    ) async throws(Problem) -> RecordingEntry {
        let name = parameters["recording"] ?? ""
        let entries = await service.recordings(of: stream)
        guard let entry = entries.first(where: { $0.id == name || $0.fileName == name }) else {
            throw Problem(404, "unknown-recording", "There is no such recording.")
        }
        return entry
    }
}

extension Problem {
    init(_ refusal: RecordingRefusal) {
        switch refusal {
        case .unavailable:
            self.init(503, "no-recordings", "This server keeps no recordings: it was started without --data.")
        case .notLive: self.init(409, "not-live", "Only a live stream can be recorded.")
        case .diskFull:
            self.init(507, "disk-full", "The server's disk has no room for a recording.")
        case .storage: self.init(StageRefusal.storage(""))
        case .overloaded:
            self.init(
                503, "overloaded", "The server records as much as it can.", headers: ["Retry-After": "30"])
        case .unknownRecording: self.init(404, "unknown-recording", "There is no such recording.")
        case .underWay:
            self.init(409, "recording-under-way", "Only a recording that has ended can be removed.")
        }
        members["rule"] = .string(kind)
    }
}
