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
        return Problem(500, nil, "Something went wrong on the server.")
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
                "No one is publishing this stream now. Try again, or wait with ?wait=SECONDS.",
                headers: ["Retry-After": "2"])
        case .overloaded:
            Problem(
                503, "overloaded", "The server is full. Try again in a moment.",
                headers: ["Retry-After": "5"])
        case .stopping:
            // Short, because the next process is there soon: a longer delay would keep clients away from it.
            Problem(
                503, "stopping", "The server is stopping or restarting. Try again in a moment.",
                headers: ["Retry-After": "1"])
        case .tooManySessions:
            Problem(
                429, "too-many-sessions",
                "Too many sessions without a token from this address. End one, or use a token.",
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
                "mediaId must be an m-line of this session with video: \(Self.list(known)).")
        case .unknownEncoding(let known):
            Problem(
                422, "unknown-encoding",
                "encodingId must be an encoding that is sent now: \(Self.list(known)) (see the layers events)."
            )
        case .unknownSize:
            Problem(
                409, "unknown-size", "No key frame of this encoding has arrived yet. Try again.",
                headers: ["Retry-After": "1"])
        }
    }

    private static func list(_ names: [String]) -> String {
        names.isEmpty ? "there is none" : names.joined(separator: ", ")
    }
}

/// Refusals of a capture; a worker records one session at a time.
extension CaptureRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unknownSession: SessionRefusal.unknownSession.problem
        case .running:
            Problem(
                409, "capture-running", "Another capture is running, for up to a minute. Try again later.",
                headers: ["Retry-After": "5"])
        }
    }
}

extension StageDetails.Gate {
    /// The refusal for a sender without the gate's tier.
    var problem: Problem {
        let place = unlock.map { " Get it at \($0)." } ?? ""
        var problem = Access.forbidden(
            "Watching this stream requires a token with the tier \(tier).\(place)", rule: "gated")
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
                409, "under-way", "The same request is still in progress.", headers: ["Retry-After": "1"])
        case .tooManyCommands(let wait):
            Problem(
                429, "too-many-commands", "Too many changes in a short time. Try again in \(wait.inSeconds).",
                headers: ["Retry-After": "\(wait)"])
        case .storage:
            // The cause, such as a full disk, is only in the log.
            Problem(
                503, "storage", "The server couldn't save the change, so nothing was changed.",
                headers: ["Retry-After": "5"])
        case .overloaded:
            Problem(
                503, "overloaded", "The server is full. Try again in a moment.", headers: ["Retry-After": "5"]
            )
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
            Problem(503, "no-recordings", "Recordings are off on this server: it was started without --data.")
        case .stopping: SessionRefusal.stopping.problem
        case .notLive: Problem(409, "not-live", "Only live streams can be recorded.")
        case .diskFull: Problem(507, "disk-full", "The server's disk is too full for a recording.")
        case .storage: StageRefusal.storage("").problem
        case .overloaded:
            Problem(
                503, "overloaded", "The server can't make more recordings now.",
                headers: ["Retry-After": "30"])
        case .unknownRecording: Problem(404, "unknown-recording", "There is no such recording.")
        case .underWay:
            Problem(
                409, "recording-under-way",
                "The recording hasn't ended yet. End it before deleting it or playing it over HLS.")
        case .notFragmented:
            Problem(
                404, "not-fragmented",
                "Only MP4 recordings, made of H.264 streams, play over HLS. Play this one as a file.")
        case .busy:
            Problem(
                503, "overloaded", "Too many recordings are being prepared for HLS. Try again in a moment.",
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
                "Clips are off on this server: it was started without --data or with --max-clips 0.")
        case .stopping: SessionRefusal.stopping.problem
        case .off: Problem(409, "clips-off", "Clips are turned off for this stream.")
        case .notLive: Problem(409, "not-live", "Only live streams can be clipped.")
        case .full:
            Problem(
                503, "clips-full",
                "The server already keeps clips for as many streams as it can (--max-clips).",
                headers: ["Retry-After": "60"])
        case .nothingThere:
            Problem(
                409, "nothing-there", "Less than a second of the stream arrived in that time.")
        case .underWay:
            Problem(409, "clip-under-way", "A clip of this stream is being made. Try again when it is done.")
        case .tooOften(let seconds):
            Problem(
                429, "too-many-clips", "A stream can get six clips a minute. Try again later.",
                headers: ["Retry-After": "\(seconds)"])
        case .tooMany:
            Problem(409, "too-many-kept", "This stream already has 200 clips. Delete some first.")
        case .busy:
            Problem(
                503, "overloaded", "Clips of other streams are being made. Try again soon.",
                headers: ["Retry-After": "10"])
        case .lost:
            Problem(
                503, "clip-lost", "Clips had to restart, so the last minutes were lost. Try again soon.",
                headers: ["Retry-After": "5"])
        case .diskFull: Problem(507, "disk-full", "The server's disk is too full for a clip.")
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
                "HLS is off on this server: it was started with --max-hls 0 or without a transcoder.")
        case .stopping: SessionRefusal.stopping.problem
        case .off: Problem(404, "hls-off", "HLS is turned off for this stream.", headers: Self.short)
        case .notLive: Problem(404, "not-live", "This stream isn't live.", headers: Self.short)
        case .noWindow:
            Problem(
                404, "no-dvr",
                "Rewinding is off: the stream's dvrSeconds is 0, or the server keeps nothing (--max-dvr).",
                headers: Self.short)
        case .full:
            Problem(
                503, "hls-full", "The server already makes HLS for as many streams as it can (--max-hls).",
                headers: ["Retry-After": "10"])
        case .overloaded:
            Problem(
                503, "overloaded", "Too many requests are waiting for the next part.",
                headers: ["Retry-After": "1"])
        case .late:
            Problem(503, "late", "The requested data didn't arrive in time.", headers: ["Retry-After": "1"])
        case .tooFarAhead:
            Problem(400, "too-far-ahead", "This is beyond the next segment.", headers: Self.short)
        case .unknownFile:
            Problem(404, "unknown-file", "This part or segment is no longer available.", headers: Self.short)
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
                "Restreaming is off on this server: it was started without --max-restreams.")
        case .stopping: SessionRefusal.stopping.problem
        case .list(.full):
            Problem(
                409, "too-many-restreams",
                "A stream can have up to \(RestreamList.limit) targets. Remove one first.")
        case .list(.duplicate):
            Problem(409, "restream-exists", "The stream already goes to this address with this key.")
        case .unknown: Problem(404, "unknown-restream", "This stream has no such target.")
        case .stage(let refusal): refusal.problem
        }
    }
}

/// Refusals of a feed's cursor; 410 tells a client to start again with the first page.
extension CursorRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .unknown: Problem(400, "malformed-cursor", "This server did not issue this cursor.")
        case .expired: Problem(410, "expired-cursor", "The cursor is too old. Start over without one.")
        }
    }
}

/// Refusals of the feed's messages over HTTP; the control channel reports the same by name.
extension FeedRefusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .notLive: Problem(404, "not-live", "This stream isn't live.")
        case .notPermitted: Problem(403, "not-permitted", "You don't have access to this stream.")
        case .noFocus:
            Problem(409, "no-focus", "No stream is in focus, so there is nothing to swipe from.")
        case .heldElsewhere:
            Problem(409, "held-elsewhere", "The second stream is used by a newer session of yours.")
        case .tooManyMessages:
            Problem(
                429, "too-many-messages", "Too many messages. Wait a moment.", headers: ["Retry-After": "1"])
        case .noSession: Problem(404, "unknown-session", "There is no such session.")
        case .full:
            Problem(503, "full", "The feed is full. Try again in a moment.", headers: ["Retry-After": "1"])
        }
    }
}
