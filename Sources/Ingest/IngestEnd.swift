/// How long a publisher may say nothing, whatever its protocol.
package enum IngestTimeouts {
    /// Until it publishes.
    package static let join = Duration.seconds(10)
    /// While it publishes.
    package static let silence = Duration.seconds(15)
}

/// Why a publisher's connection ends, as logs and its client are told.
package enum IngestEnd: Error, Equatable, Sendable {
    /// It said so, or hung up.
    case byPublisher
    /// What it sent is not what its protocol has, or more than is taken.
    case malformed(String)
    /// It did not say in time what it wants, or what it sends.
    case timedOut
    /// Nothing came for a while.
    case stalled
    /// An application that is not here.
    case unknownApplication
    /// A stream that nobody has made.
    case unknownStream
    /// Nobody who may publish to it.
    case badKey(String)
    /// No room for another one.
    case overloaded
    /// The stream's rules or the server's limits stand against it.
    case refused(String)
    /// It sends what viewers cannot be given; in words for whoever set up the encoder.
    case unsupported(String)
    /// Its session ended here: another took its place, or the host ended it.
    case ended(String)

    /// One word, for logs and metrics.
    package var name: String {
        switch self {
        case .byPublisher: "by-publisher"
        case .malformed: "malformed"
        case .timedOut: "timed-out"
        case .stalled: "stalled"
        case .unknownApplication: "unknown-application"
        case .unknownStream, .badKey: "bad-key"
        case .refused, .overloaded: "refused"
        case .unsupported: "unsupported"
        case .ended: "ended"
        }
    }

    /// For people; empty where the name says it all.
    package var detail: String {
        switch self {
        case .byPublisher, .timedOut: ""
        case .stalled: "Nothing came for \(IngestTimeouts.silence.components.seconds) seconds."
        case .unknownApplication: "The server's address ends with /\(RTMPSession.application)."
        case .unknownStream:
            "There is no such stream: make it first, in the studio or by POST /v1/streams."
        case .overloaded: "The server has no room for another session now."
        case .malformed(let text), .badKey(let text), .refused(let text), .unsupported(let text),
            .ended(let text):
            text
        }
    }
}
