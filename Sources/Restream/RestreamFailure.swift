import Base

/// Why a target does not take the programme.
package enum RestreamFailure: Equatable, Sendable {
    /// The target says no, in its own words.
    case refused(String)
    /// What it says is no RTMP that is understood here.
    case malformed(String)
    /// It did not answer in time.
    case timedOut
    /// It closed the connection.
    case closed
    /// It takes less than comes, and in the end nothing.
    case stalled
    case unresolved
    case forbidden
    /// In the kernel's words.
    case unreachable(String)
    /// It could not prove who it is; nil where it speaks no TLS.
    case insecure(String?)
    /// The server sends to as many targets as it may.
    case full

    /// For programs.
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

    /// For the host: what is wrong, and what to do about it.
    package var text: String {
        switch self {
        case .refused(let words):
            "The target refuses the stream\(words.isEmpty ? "" : " (it says: \(words))"). Check the key, and whether the "
                + "target waits for a stream now."
        case .malformed(let what): "The target does not speak RTMP as it should: \(what)."
        case .timedOut: "The target does not answer. Check address and port."
        case .closed:
            "The target closed the connection. Often the key is wrong, or another encoder took over."
        case .stalled: "The target takes the stream too slowly, or not at all any more."
        case .unresolved: "There is no such host. Check the address."
        case .forbidden: "This server does not send to addresses in private or local networks."
        case .unreachable(let words): "The target cannot be reached (\(words)). Check address and port."
        case .insecure(let words?): "The target's certificate is not good (\(words)), so nothing was sent."
        case .insecure(nil): "The target does not speak TLS here: try rtmp:// or another port."
        case .full: "This server sends to as many targets as it may. It is tried again."
        }
    }
}
