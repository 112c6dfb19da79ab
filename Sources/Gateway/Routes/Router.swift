import Base
import HTTP

/// Something a client can ask for.
enum Operation: String, CaseIterable, Sendable {
    case publish, publishPreview, publishSession, publishTrickle, publishEnd
    case play, playPreview, playSession, playTrickle, playEnd
    case join, joinSession, joinTrickle, joinEnd
    case listFeed, enterFeed, feedSession, feedTrickle, feedEnd, peek, focus, release, followFeed
    case makeToken
    case listStreams, createStream, showStream, editStream, goLive, endStream, followStream
    case showPlacement, placeStream
    case showParticipants, enter, removeParticipant, showBans, ban, unban, renewToken
    case raiseHand, lowerHand, invite, endInvitation, acceptInvitation
    case makeLink, revokeLinks
    case leaveStage, describeSpeaker, requestMute
    case previewWebP, previewJPEG, choosePausePicture, dropPausePicture
    case startRecording, stopRecording, listRecordings, showRecording, removeRecording
    case describeServer, health, readiness, metrics, openAPI
    case feedPage, livePage, watchPage, asset
}

/// Which operation belongs to which method and path.
struct Route: Sendable {
    enum Segment: Sendable, Equatable {
        case literal(String)
        case parameter(String)
        /// One segment or more: an identity may have slashes, which arrive decoded.
        case identity(String)
        /// All that is left, at least one segment.
        case rest(String)
    }

    let method: HTTPMethod
    /// As OpenAPI writes it: `/whip/{stream}`.
    let pattern: String
    let segments: [Segment]
    let operation: Operation

    init(_ method: HTTPMethod, _ pattern: String, _ operation: Operation) {
        self.method = method
        self.pattern = pattern
        self.operation = operation
        segments = pattern.split(separator: "/").map { part in
            guard part.hasPrefix("{"), part.hasSuffix("}") else { return .literal(String(part)) }
            let name = part.dropFirst().dropLast()
            if name.hasSuffix("*") { return .rest(String(name.dropLast())) }
            return name == "participant" ? .identity(String(name)) : .parameter(String(name))
        }
    }

    /// The parameters of a path that fits; nil for others.
    func match(_ path: [Substring]) -> [String: String]? {
        var parameters: [String: String] = [:]
        var index = 0
        for (place, segment) in segments.enumerated() {
            guard index < path.count else { return nil }
            defer { index += 1 }
            switch segment {
            case .literal(let text):
                guard path[index] == text else { return nil }
            case .parameter(let name): parameters[name] = String(path[index])
            case .identity(let name):
                let end = path.count - (segments.count - place - 1)
                guard index < end else { return nil }
                parameters[name] = path[index..<end].joined(separator: "/")
                index = end - 1
            case .rest(let name):
                parameters[name] = path[index...].joined(separator: "/")
                return parameters
            }
        }
        return path.count == index ? parameters : nil
    }
}

/// The routing table.
enum Router {
    enum Outcome: Sendable {
        case found(Operation, [String: String])
        /// The path exists, the method does not.
        case otherMethods([HTTPMethod])
        case nothing
    }

    /// HEAD goes wherever GET does, OPTIONS everywhere.
    static let routes: [Route] = [
        Route(.post, "/whip/{stream}", .publish),
        Route(.get, "/whip/{stream}", .publishPreview),
        Route(.get, "/whip/{stream}/{session}", .publishSession),
        Route(.patch, "/whip/{stream}/{session}", .publishTrickle),
        Route(.delete, "/whip/{stream}/{session}", .publishEnd),
        Route(.post, "/whep/{stream}", .play),
        Route(.get, "/whep/{stream}", .playPreview),
        Route(.get, "/whep/{stream}/{session}", .playSession),
        Route(.patch, "/whep/{stream}/{session}", .playTrickle),
        Route(.delete, "/whep/{stream}/{session}", .playEnd),
        Route(.post, "/v1/tokens", .makeToken),
        Route(.get, "/v1/streams", .listStreams),
        Route(.post, "/v1/streams", .createStream),
        Route(.get, "/v1/streams/{stream}", .showStream),
        Route(.patch, "/v1/streams/{stream}", .editStream),
        Route(.get, "/v1/streams/{stream}/placement", .showPlacement),
        Route(.patch, "/v1/streams/{stream}/placement", .placeStream),
        Route(.post, "/v1/streams/{stream}/live", .goLive),
        Route(.post, "/v1/streams/{stream}/end", .endStream),
        Route(.get, "/v1/streams/{stream}/participants", .showParticipants),
        Route(.post, "/v1/streams/{stream}/participants", .enter),
        Route(.delete, "/v1/streams/{stream}/participants/{participant}", .removeParticipant),
        Route(.get, "/v1/streams/{stream}/bans", .showBans),
        Route(.post, "/v1/streams/{stream}/bans", .ban),
        Route(.delete, "/v1/streams/{stream}/bans/{participant}", .unban),
        Route(.post, "/v1/streams/{stream}/hands", .raiseHand),
        Route(.delete, "/v1/streams/{stream}/hands/{participant}", .lowerHand),
        Route(.post, "/v1/streams/{stream}/invitations", .invite),
        Route(.delete, "/v1/streams/{stream}/invitations/{participant}", .endInvitation),
        Route(.post, "/v1/streams/{stream}/invitations/{participant}/accept", .acceptInvitation),
        Route(.patch, "/v1/streams/{stream}/speakers/{participant}", .describeSpeaker),
        Route(.delete, "/v1/streams/{stream}/speakers/{participant}", .leaveStage),
        Route(.post, "/v1/streams/{stream}/speakers/{participant}/mute", .requestMute),
        Route(.post, "/v1/streams/{stream}/tokens", .renewToken),
        Route(.post, "/v1/streams/{stream}/links", .makeLink),
        Route(.delete, "/v1/streams/{stream}/links", .revokeLinks),
        Route(.get, "/v1/streams/{stream}/sync", .followStream),
        Route(.post, "/v1/streams/{stream}/sessions", .join),
        Route(.get, "/v1/streams/{stream}/sessions/{session}", .joinSession),
        Route(.patch, "/v1/streams/{stream}/sessions/{session}", .joinTrickle),
        Route(.delete, "/v1/streams/{stream}/sessions/{session}", .joinEnd),
        Route(.get, "/v1/streams/{stream}/preview.webp", .previewWebP),
        Route(.get, "/v1/streams/{stream}/preview.jpg", .previewJPEG),
        Route(.get, "/v1/feed", .listFeed),
        Route(.get, "/v1/feed/sync", .followFeed),
        Route(.post, "/v1/feed/sessions", .enterFeed),
        Route(.get, "/v1/feed/sessions/{session}", .feedSession),
        Route(.patch, "/v1/feed/sessions/{session}", .feedTrickle),
        Route(.delete, "/v1/feed/sessions/{session}", .feedEnd),
        Route(.post, "/v1/feed/sessions/{session}/peek", .peek),
        Route(.post, "/v1/feed/sessions/{session}/focus", .focus),
        Route(.post, "/v1/feed/sessions/{session}/release", .release),
        Route(.put, "/v1/streams/{stream}/pause-picture", .choosePausePicture),
        Route(.delete, "/v1/streams/{stream}/pause-picture", .dropPausePicture),
        Route(.post, "/v1/streams/{stream}/recording", .startRecording),
        Route(.delete, "/v1/streams/{stream}/recording", .stopRecording),
        Route(.get, "/v1/streams/{stream}/recordings", .listRecordings),
        Route(.get, "/v1/streams/{stream}/recordings/{recording}", .showRecording),
        Route(.delete, "/v1/streams/{stream}/recordings/{recording}", .removeRecording),
        Route(.get, "/v1/server", .describeServer),
        Route(.get, "/healthz", .health),
        Route(.get, "/readyz", .readiness),
        Route(.get, "/metrics", .metrics),
        Route(.get, "/v1/openapi.json", .openAPI),
        Route(.get, "/", .feedPage),
        Route(.get, "/live/{stream}", .livePage),
        Route(.get, "/watch/{stream}", .watchPage),
        Route(.get, "/assets/{file*}", .asset),
    ]

    static func route(_ method: HTTPMethod, _ path: String) -> Outcome {
        let segments = path.split(separator: "/")
        var allowed: [HTTPMethod] = []
        for route in routes {
            guard let parameters = route.match(segments) else { continue }
            if route.method == method || route.method == .get && method == .head {
                return .found(route.operation, parameters)
            }
            allowed.append(route.method)
            if route.method == .get { allowed.append(.head) }
        }
        guard !allowed.isEmpty else { return .nothing }
        return .otherMethods(allowed + [.options])
    }
}
