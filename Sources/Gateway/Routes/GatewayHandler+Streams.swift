import Base
import Foundation
import Node

/// Streams, and who follows them.
extension GatewayHandler {
    /// `GET /v1/streams`.
    func listStreams(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let token = try access.token(of: request)
        guard token != nil || settings.viewers == .everyone else {
            throw Access.unauthorized("To see streams takes a token.")
        }
        let streams = await service.streamSnapshots().filter { stream in
            settings.viewers == .everyone || token?.mayPlay(stream.id) == true
        }
        var response = HTTPResponse.json(200, .object(["streams": .array(streams.map(\.json))]))
        response.headers.set("Cache-Control", "no-store")
        return response
    }

    /// `GET /v1/streams/{stream}`.
    func showStream(_ request: HTTPRequest, _ parameters: [String: String]) async throws(Problem)
        -> HTTPResponse
    {
        let stream = try Self.stream(parameters)
        _ = try access.requireViewer(request, of: stream)
        guard let snapshot = await service.streamSnapshot(stream) else {
            throw Problem(SessionRefusal.unknownStream)
        }
        var response = HTTPResponse.json(200, snapshot.json)
        response.headers.set("Cache-Control", "no-store")
        return response
    }

    /// `GET /v1/streams/{stream}/sync`: first a snapshot, then changes, over a WebSocket.
    ///
    /// A change holds the whole stream: with `?since=` there is nothing else a client could have missed.
    func follow(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void {
        let stream = try Self.stream(parameters)
        _ = try access.requireViewer(request, of: stream)
        return { [service, settings] connection in
            let changes = await service.changes(of: stream)
            await withTaskGroup { group in
                // Nothing is expected from the client, but its leaving ends this.
                group.addTask { for await _ in connection.incoming {} }
                group.addTask {
                    await Self.send(changes, to: connection, interval: settings.changeInterval)
                    connection.close(.goingAway)
                }
                await group.next()
                group.cancelAll()
            }
        }
    }

    private static func send(
        _ changes: AsyncStream<StreamSnapshot>, to connection: WebSocketConnection, interval: Duration
    ) async {
        var type = "snapshot"
        for await snapshot in changes {
            let message = JSON.object([
                "type": .string(type), "version": .number(Double(snapshot.version)), "stream": snapshot.json,
            ])
            // When the client reads too slowly it misses this state, and gets a later one.
            if connection.send(String(decoding: message.bytes, as: UTF8.self)) == .closed { return }
            type = "change"
            // Many viewers that come at once are one message to everybody, not many.
            do { try await Task.sleep(for: interval) } catch { return }
        }
    }
}

extension StreamSnapshot {
    /// As clients see it.
    var json: JSON {
        let tracks = (hasAudio ? ["audio"] : []) + (hasVideo ? ["video"] : [])
        return .object([
            "id": .string(id.description),
            "state": .string(state.rawValue),
            "version": .number(Double(version)),
            "viewers": .number(Double(viewers)),
            "host": host.map { .string($0.description) } ?? .null,
            "hostName": (hostName ?? host?.description).map { .string($0) } ?? .null,
            "startedAt": startedAt.map { .string(Timestamp.text($0)) } ?? .null,
            "endedAt": endedAt.map { .string(Timestamp.text($0)) } ?? .null,
            "tracks": .array(tracks.map { .object(["kind": .string($0)]) }),
        ])
    }
}

enum Timestamp {
    /// `2026-11-21T03:40:07.375Z`.
    /// - Parameter seconds: since 1970.
    static func text(_ seconds: Double) -> String {
        Date(timeIntervalSince1970: seconds).formatted(
            Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
