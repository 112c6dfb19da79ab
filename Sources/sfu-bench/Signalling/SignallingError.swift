/// Why a request to the server brought nothing of use.
enum SignallingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No connection, or it broke; the text is the system's.
    case unreachable(String)
    /// The server refused; `detail` is what it said, and `retryAfter` when it may be asked again, in seconds.
    case refused(status: Int, detail: String, retryAfter: Double? = nil)
    /// The answer cannot be used.
    case unusable(String)

    var description: String {
        switch self {
        case .unreachable(let reason): "no answer: \(reason)"
        case .refused(let status, let detail, _):
            "HTTP \(status)" + (detail.isEmpty ? "" : ": \(detail)")
        case .unusable(let reason): "unusable answer: \(reason)"
        }
    }
}
