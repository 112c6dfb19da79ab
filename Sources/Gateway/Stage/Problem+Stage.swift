import Base
import HTTP
import Node
import Stage

extension Problem {
    init(_ refusal: StageRefusal) {
        switch refusal {
        case .rejected(let rejection): self.init(rejection)
        case .unknownStream: self.init(404, "unknown-stream", "There is no such stream.")
        case .streamExists: self.init(409, "stream-exists", "A stream with this ID already exists.")
        case .keyReused:
            self.init(
                422, "idempotency-key-reused", "This Idempotency-Key was used with a different request.")
        case .busy:
            self.init(
                409, "under-way", "The same request is being carried out.", headers: ["Retry-After": "1"])
        case .tooManyCommands(let wait):
            self.init(
                429, "too-many-commands", "You did much in a short time; try again in \(wait) seconds.",
                headers: ["Retry-After": "\(wait)"])
        case .storage:
            // What is wrong with the disk is for the log.
            self.init(
                503, "storage", "The change could not be stored, so it was not made.",
                headers: ["Retry-After": "5"])
        case .overloaded:
            self.init(503, "overloaded", "The server has no room for this.", headers: ["Retry-After": "5"])
        }
    }

    /// What a field of a request may be.
    private static let allowed: [String: String] = [
        "title": "1 to \(StageDetails.titleLength) printable characters, or null",
        "startsAt": "a time with its zone that is not past, such as 2030-01-01T20:00:00Z, or null",
        "joinAheadSeconds": range(StageDetails.joinAheadRange),
        "hostGraceSeconds": range(StageDetails.hostGraceRange),
        "programme": choice(StageDetails.Programme.self), "recording": choice(StageDetails.Recording.self),
        "layers": "a list of different \(choice(StageDetails.Layer.self))",
        "composition":
            "an object of width, height, fps, bitrate, layout (grid or spotlight) and background (#RRGGBB), "
            + "with even sides, or null",
        "pinned": range(StagePlacement.pinnedRange) + ", or null", "boost": range(StagePlacement.boostRange),
        "id": "1 to 64 of A-Z a-z 0-9 _ -", "stream": "1 to 64 of A-Z a-z 0-9 _ -",
        "host": "1 to 128 printable characters", "hostName": "1 to 128 printable characters",
        "name": "1 to 128 printable characters, and not only blanks",
        "participant": "an identity of 1 to 128 printable characters",
        "kind": choice(StageChange.MediaKind.self),
        "audioMuted": "true or false; give it, videoMuted or paused", "videoMuted": "true or false",
        "paused": "true or false", "role": "speaker or viewer",
        "ttl": "a whole number of seconds from 1 to 2592000",
        "state": choice(StreamState.self), "limit": "a whole number from 1 up to what the route allows",
        "cursor": "what an earlier answer gave as next",
        "after": "a time with its zone, such as 2030-01-01T20:00:00Z",
        "before": "a time with its zone, such as 2030-01-01T20:00:00Z",
        "Idempotency-Key": "1 to 255 bytes",
    ]

    private static func range(_ range: ClosedRange<Int>) -> String {
        "a whole number from \(range.lowerBound) to \(range.upperBound)"
    }

    private static func choice<Choice: CaseIterable & RawRepresentable<String>>(_: Choice.Type) -> String {
        "one of " + Choice.allCases.map(\.rawValue).joined(separator: ", ")
    }

    private init(_ rejection: Rejection) {
        let status =
            switch rejection.kind {
            case .forbidden: 403
            case .missing: 404
            case .conflict: 409
            case .invalid: 422
            case .limit: 429
            }
        self.init(status, rejection.name, rejection.explanation)
        switch rejection {
        case .backstage(let startsAt, let waiting):
            members["startsAt"] = .time(startsAt)
            members["waiting"] = .integer(waiting)
            headers.set("Retry-After", "10")
        case .invalid(let field):
            members["field"] = .string(field)
            if let allowed = Self.allowed[field] { detail = "\(field) must be \(allowed)." }
        default: break
        }
        if rejection.kind == .limit { headers.set("Retry-After", "10") }
    }
}
