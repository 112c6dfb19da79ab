import Base

/// Why a target does not receive the programme.
package enum RestreamFailure: Equatable, Sendable {
    /// The target refused the stream; its own description, which may be empty.
    case refused(String)
    /// The target violated the RTMP protocol; what was wrong.
    case malformed(String)
    /// The target did not accept the stream within `RTMPPublisher.joinLimit`.
    case timedOut
    /// The target closed the connection.
    case closed
    /// The target reads more slowly than media arrives, and finally stopped reading.
    case stalled
    /// The host name has no address.
    case unresolved
    /// All addresses of the host are outside the permitted `TargetNetworks`.
    case forbidden
    /// The TCP connection failed; the kernel's description.
    case unreachable(String)
    /// The target's certificate was not accepted; nil if the target does not speak TLS.
    case insecure(String?)
    /// The server already sends to as many targets as it is configured for.
    case full

    /// Stable identifier for the API, logs and metrics.
    package var name: String {
        switch self {
        case .refused: "refused"
        case .malformed: "malformed"
        case .timedOut: "timed-out"
        case .closed: "closed"
        case .stalled: "stalled"
        case .unresolved: "unresolved"
        case .forbidden: "forbidden"
        case .unreachable: "unreachable"
        case .insecure: "insecure"
        case .full: "full"
        }
    }

    /// Explanation for the host: what is wrong, and how to fix it.
    package var text: String {
        switch self {
        case .refused(let words):
            "The target refused the stream\(words.isEmpty ? "" : " (it said: \(words))"). "
                + "Check the key, and whether the target is expecting a stream now."
        case .malformed(let what): "The target doesn't speak RTMP correctly: \(what)."
        case .timedOut: "The target isn't responding. Check the address and port."
        case .closed:
            "The target closed the connection. The key may be wrong, or another encoder may have taken over."
        case .stalled: "The target receives the stream too slowly or not at all."
        case .unresolved: "The target's host couldn't be found. Check the address."
        case .forbidden: "This server doesn't send to addresses in private or local networks."
        case .unreachable(let words): "The target couldn't be reached (\(words)). Check the address and port."
        case .insecure(let words?): "The target's certificate isn't valid (\(words)), so nothing was sent."
        case .insecure(nil): "The target doesn't use TLS on this port. Try rtmp:// or another port."
        case .full: "This server already sends to as many targets as it can."
        }
    }
}
