import Base
import Node
import Stage

extension Problem {
    init(_ refusal: StageRefusal) {
        switch refusal {
        case .rejected(let rejection): self.init(rejection)
        case .unknownStream: self.init(404, "unknown-stream", "There is no such stream.")
        case .streamExists: self.init(409, "stream-exists", "There is such a stream already.")
        case .keyReused:
            self.init(422, "idempotency-key-reused", "This Idempotency-Key came with another request before.")
        case .busy:
            self.init(
                409, "under-way", "The same request is being carried out.", headers: ["Retry-After": "1"])
        case .storage:
            // What is wrong with the disk is for the log.
            self.init(
                503, "storage", "This cannot be remembered at the moment, so it was not done.",
                headers: ["Retry-After": "5"])
        case .overloaded:
            self.init(503, "overloaded", "The server has no room for this.", headers: ["Retry-After": "5"])
        }
        members["rule"] = .string(kind)
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
        case .invalid(let field): members["field"] = .string(field)
        default: break
        }
        if rejection.kind == .limit { headers.set("Retry-After", "10") }
    }
}
