/// Why a request to the server brought nothing of use.
enum SignallingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No connection, or it broke; the text is the system's.
    case unreachable(String)
    /// The server refused; `detail` is what it said.
    case refused(status: Int, detail: String)
    /// The answer cannot be used.
    case unusable(String)

    var description: String {
        switch self {
        case .unreachable(let reason): "no answer: \(reason)"
        case .refused(let status, let detail):
            "HTTP \(status)" + (detail.isEmpty ? "" : ": \(detail)")
        case .unusable(let reason): "unusable answer: \(reason)"
        }
    }
}
