/// How long a publisher may be silent, the same for RTMP and SRT.
package enum IngestTimeouts {
    /// From the connection until it publishes.
    package static let join = Duration.seconds(10)
    /// While it publishes.
    package static let silence = Duration.seconds(15)
}

/// Why a publisher's connection ended, for logs and for its encoder.
package enum IngestEnd: Error, Equatable, Sendable {
    /// The publisher ended the stream or closed the connection.
    case byPublisher
    /// The publisher violated the protocol, or exceeded one of its limits.
    case malformed(String)
    /// The publisher did not begin to publish in time.
    case timedOut
    /// No data arrived for `IngestTimeouts.silence`.
    case stalled
    /// The RTMP application is not `RTMPSession.application`.
    case unknownApplication
    /// The stream does not exist.
    case unknownStream
    /// The key does not permit publishing to the stream.
    case badKey(String)
    /// The server has no capacity for another session.
    case overloaded
    /// The stream's rules or the server's limits do not permit it.
    case refused(String)
    /// The media cannot be shown to viewers; the text addresses the person who set up the encoder.
    case unsupported(String)
    /// The server ended the session: another publisher took over, or the host ended it.
    case ended(String)

    /// One word, for logs and metrics; an unknown stream counts as a bad key.
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

    /// Explanation for people; empty where the name is enough.
    package var detail: String {
        switch self {
        case .byPublisher, .timedOut: ""
        case .stalled: "No data arrived for \(IngestTimeouts.silence.components.seconds) seconds."
        case .unknownApplication: "The server's address must end with /\(RTMPSession.application)."
        case .unknownStream:
            "There is no such stream. Create it first, in the studio or by POST /v1/streams."
        case .overloaded: "The server is full. Try again in a moment."
        case .malformed(let text), .badKey(let text), .refused(let text), .unsupported(let text),
            .ended(let text):
            text
        }
    }
}
