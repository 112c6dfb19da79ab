/// Why a request to the server had no usable result.
enum SignallingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The connection failed or broke; the text is the system's.
    case unreachable(String)
    /// The server refused: `detail` is its explanation, `retryAfter` the seconds until it may be asked again.
    case refused(status: Int, detail: String, retryAfter: Double? = nil)
    /// The server answered, but the answer cannot be used, for this reason.
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
