import Base
import HTTP
import Node
import Recordings
import Restream
import Stage
import StoryFeed

/// An error that has a problem document.
///
/// Nearly all conformances are in this file, so that statuses and wording can be compared.
protocol ProblemConvertible: Error {
    /// The response for the client.
    var problem: Problem { get }
}

extension Problem: ProblemConvertible {
    var problem: Problem { self }

    /// The problem document for any error that a route throws; an unexpected type is a bug here, and a 500.
    static func describing(_ error: any Error) -> Problem {
        if let error = error as? any ProblemConvertible { return error.problem }
        assertionFailure("routes throw what has a problem document, and \(type(of: error)) has none")
        return Problem(500, nil, "The server made a mistake.")
    }
}

/// A 401 asks for another token, with the error code of RFC 6750 §3.1; an invitation is valid, but allows nothing.
extension TokenRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .invitation: Access.forbidden(description, rule: "invitation")
        case .expired: Access.unauthorized(description, error: "invalid_token", rule: "token-expired")
        default: Access.unauthorized(description, error: "invalid_token", rule: "token-invalid")
        }
    }
}

/// Refusals of WHIP, WHEP and the other sessions.
///
/// 503 is a limit of the server, 429 one of the client's address, which ends with its other sessions.
/// - Source: RFC 9110 §15.5.1 (400), §15.5.7 (406), §15.5.21 (422).
extension SessionRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .malformedOffer(let detail): Problem(400, "malformed-offer", detail)
        case .unsupportedOffer(let detail): Problem(422, "unsupported-offer", detail)
        case .notAcceptable(let detail): Problem(406, "no-common-codec", detail)
        // 409 and not 404: the stream may exist, and the request succeeds once it has a publisher.
        case .noPublisher:
            Problem(
                409, "no-publisher",
                "Nobody publishes this stream now; ask again, or wait with ?wait=SECONDS.",
                headers: ["Retry-After": "2"])
        case .overloaded:
            Problem(
                503, "overloaded", "The server has no room for another session.",
                headers: ["Retry-After": "5"])
        case .stopping:
            // Short, because the next process is there soon: a longer delay would keep clients away from it.
            Problem(
                503, "stopping", "The server is being stopped or restarted; ask again in a moment.",
                headers: ["Retry-After": "1"])
        case .tooManySessions:
            Problem(
                429, "too-many-sessions",
                "From this address there are as many sessions without a token as one may have; end one, or show a token.",
                headers: ["Retry-After": "10"])
        case .unknownSession: Problem(404, "unknown-session", "There is no such session.")
        // Behind a gate, after the free seconds.
        case .gated(let gate): gate.problem
        case .stage(let refusal): refusal.problem
        }
    }
}

/// Refusals of a player's choice; where possible they list what can be chosen, which depends on the publisher.
extension EncodingRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unknownSession: SessionRefusal.unknownSession.problem
        case .unknownMedia(let known):
            Problem(
                422, "unknown-media",
                "mediaId is no m-line with pictures of this session; there is: \(Self.list(known)).")
        case .unknownEncoding(let known):
            Problem(
                422, "unknown-encoding",
                "encodingId is nothing that is sent now; there is: \(Self.list(known)), as events tell.")
        case .unknownSize:
            Problem(
                409, "unknown-size", "No key frame of this encoding has come yet; ask again.",
                headers: ["Retry-After": "1"])
        }
    }

    private static func list(_ names: [String]) -> String {
        names.isEmpty ? "nothing" : names.joined(separator: ", ")
    }
}

/// Refusals of a capture; a worker records one session at a time.
extension CaptureRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unknownSession: SessionRefusal.unknownSession.problem
        case .running:
            Problem(
                409, "capture-running", "Another capture is under way; one may take a minute.",
                headers: ["Retry-After": "5"])
        }
    }
}

extension StageDetails.Gate {
    /// The refusal for a sender without the gate's tier.
    var problem: Problem {
        let place = unlock.map { " It is to be had at \($0)." } ?? ""
        var problem = Access.forbidden(
            "Watching this stream takes a token with the tier \(tier).\(place)", rule: "gated")
        // For players, which show where the tier can be bought.
        problem.members["tier"] = .string(tier)
        problem.members["unlock"] = .text(unlock)
        return problem
    }
}

/// Refusals around the stage: the rules' own, and those of creating, storing and limiting.
extension StageRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .rejected(let rejection): rejection.problem
        case .interaction(let refusal): refusal.problem
        case .unknownStream: Problem(404, "unknown-stream", "There is no such stream.")
        case .streamExists: Problem(409, "stream-exists", "A stream with this ID already exists.")
        // 422 here and 409 below: as draft-ietf-httpapi-idempotency-key-header-07 prescribes.
        case .keyReused:
            Problem(
                422, "idempotency-key-reused", "This Idempotency-Key was used with a different request.")
        case .busy:
            Problem(
                409, "under-way", "The same request is being carried out.", headers: ["Retry-After": "1"])
        case .tooManyCommands(let wait):
            Problem(
                429, "too-many-commands", "You did much in a short time; try again in \(wait) seconds.",
                headers: ["Retry-After": "\(wait)"])
        case .storage:
            // The cause, such as a full disk, is only in the log.
            Problem(
                503, "storage", "The change could not be stored, so it was not made.",
                headers: ["Retry-After": "5"])
        case .overloaded:
            Problem(503, "overloaded", "The server has no room for this.", headers: ["Retry-After": "5"])
        }
    }
}

/// The same for refusals of the stage and of the interaction.
extension RefusalKind {
    /// The HTTP status.
    var status: Int {
        switch self {
        case .forbidden: 403
        case .missing: 404
        case .conflict: 409
        case .invalid: 422
        case .limit: 429
        }
    }
}

/// Refusals of the stage; members give a waiting client what it needs to show.
extension Rejection: ProblemConvertible {
    var problem: Problem {
        var problem = Problem(kind.status, name, explanation)
        switch self {
        case .backstage(let startsAt, let waiting):
            problem.members["startsAt"] = .time(startsAt)
            problem.members["waiting"] = .integer(waiting)
            problem.headers.set("Retry-After", "10")
        // Names what would be valid, if that is known.
        case .invalid(let field):
            problem.members["field"] = .string(field)
            if let allowed = AllowedValues.byField[field] { problem.detail = "\(field) must be \(allowed)." }
        default: break
        }
        if kind == .limit { problem.headers.set("Retry-After", "10") }
        return problem
    }
}

/// Refusals of recordings: 503 and 507 concern the server, 409 the stream's present state.
extension RecordingRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unavailable:
            Problem(503, "no-recordings", "This server keeps no recordings: it was started without --data.")
        case .notLive: Problem(409, "not-live", "Only a live stream can be recorded.")
        case .diskFull: Problem(507, "disk-full", "The server's disk has no room for a recording.")
        case .storage: StageRefusal.storage("").problem
        case .overloaded:
            Problem(
                503, "overloaded", "The server records as much as it can.", headers: ["Retry-After": "30"])
        case .unknownRecording: Problem(404, "unknown-recording", "There is no such recording.")
        case .underWay:
            Problem(
                409, "recording-under-way",
                "Only a recording that has ended can be removed, or played by HLS.")
        case .notFragmented:
            Problem(
                404, "not-fragmented",
                "HLS plays recordings in MP4: those of streams in H.264. Others are played as files.")
        case .busy:
            Problem(
                503, "overloaded", "Many recordings are being prepared for HLS.",
                headers: ["Retry-After": "5"])
        }
    }
}

/// Refusals of clips.
extension ClipRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unavailable:
            Problem(
                503, "no-clips",
                "This server makes no clips: it was started without --data, or with --max-clips 0.")
        case .off: Problem(409, "clips-off", "The stream's settings allow no clips.")
        case .notLive: Problem(409, "not-live", "Clips are made of live streams only.")
        case .full:
            Problem(
                503, "clips-full",
                "The last minutes of as many streams as this server may (--max-clips) are kept already.",
                headers: ["Retry-After": "60"])
        case .nothingThere:
            Problem(
                409, "nothing-there", "Nothing of the stream came in this time, or for less than a second.")
        case .underWay:
            Problem(409, "clip-under-way", "A clip of this stream is being made; the next may follow it.")
        case .tooOften(let seconds):
            Problem(
                429, "too-many-clips", "Of a stream six clips a minute are made.",
                headers: ["Retry-After": "\(seconds)"])
        case .tooMany:
            Problem(409, "too-many-kept", "Of a stream 200 clips are kept; delete some first.")
        case .busy:
            Problem(
                503, "overloaded", "Clips of other streams are being made.", headers: ["Retry-After": "10"])
        case .lost:
            Problem(
                503, "clip-lost", "What makes clips has died, and is started again; what it kept is lost.",
                headers: ["Retry-After": "5"])
        case .diskFull: Problem(507, "disk-full", "The server's disk has no room for a clip.")
        case .storage: StageRefusal.storage("").problem
        }
    }
}

/// Refusals of HLS; those that may pass within a moment are cached for a second only.
extension HLSRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unavailable:
            Problem(
                404, "no-hls",
                "This server makes no HLS: it was started with --max-hls 0, or without a transcoder.")
        case .off: Problem(404, "hls-off", "The stream's settings allow no HLS.", headers: Self.short)
        case .notLive: Problem(404, "not-live", "No such stream is live.", headers: Self.short)
        case .noWindow:
            Problem(
                404, "no-dvr",
                "Nobody can go back in this stream: its dvrSeconds are 0, or the server keeps nothing (--max-dvr).",
                headers: Self.short)
        case .full:
            Problem(
                503, "hls-full", "HLS is made of as many streams as this server may (--max-hls).",
                headers: ["Retry-After": "10"])
        case .overloaded:
            Problem(
                503, "overloaded", "Too many requests wait for the next part.", headers: ["Retry-After": "1"])
        case .late:
            Problem(503, "late", "What was waited for did not come in time.", headers: ["Retry-After": "1"])
        case .tooFarAhead:
            Problem(400, "too-far-ahead", "This is further ahead than the next segment.", headers: Self.short)
        case .unknownFile:
            Problem(404, "unknown-file", "There is no such part or segment any more.", headers: Self.short)
        }
    }

    /// Allows caches to keep the error for a second only, as the file may appear at any moment.
    private static var short: HTTPHeaders { ["Cache-Control": "max-age=1"] }
}

/// Refusals of restream targets.
extension RestreamRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unavailable:
            Problem(
                404, "no-restreams",
                "This server sends no programme on: it was started without --max-restreams.")
        case .list(.full):
            Problem(
                409, "too-many-restreams",
                "A stream has at most \(RestreamList.limit) targets; remove one first.")
        case .list(.duplicate):
            Problem(409, "restream-exists", "The stream goes to this address with this key already.")
        case .unknown: Problem(404, "unknown-restream", "The stream has no such target.")
        case .stage(let refusal): refusal.problem
        }
    }
}

/// Refusals of a feed's cursor; 410 tells a client to start again with the first page.
extension CursorRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unknown: Problem(400, "malformed-cursor", "This server did not issue this cursor.")
        case .expired: Problem(410, "expired-cursor", "The cursor is too old; begin again without one.")
        }
    }
}

/// Refusals of the feed's messages over HTTP; the control channel reports the same by name.
extension FeedRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .notLive: Problem(404, "not-live", "No such stream is live.")
        case .notPermitted: Problem(403, "not-permitted", "You may not see this stream.")
        case .noFocus:
            Problem(409, "no-focus", "No stream is in focus, so there is nothing to swipe away from.")
        case .heldElsewhere:
            Problem(409, "held-elsewhere", "A newer session of yours uses the second stream.")
        case .tooManyMessages:
            Problem(
                429, "too-many-messages", "Too many messages; wait a little.", headers: ["Retry-After": "1"])
        case .noSession: Problem(404, "unknown-session", "There is no such session.")
        case .full: Problem(503, "full", "The feed is full.", headers: ["Retry-After": "1"])
        }
    }
}
