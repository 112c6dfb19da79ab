/// Why a request of an app failed.
public enum RostrumError: Error, Equatable, Sendable {
    /// The server refused it.
    ///
    /// - `status`: of HTTP, such as 403.
    /// - `rule`: the name of the violated rule, such as `not-host`; nil if the server names none.
    /// - `detail`: a description for people.
    /// - `retryAfter`: how long the server asks to wait before the next try; nil if it does not say.
    case refused(status: Int, rule: String?, detail: String, retryAfter: Duration?)
    /// The server cannot be reached; the text is the system's.
    case unreachable(String)
    /// A response or an argument makes no sense: not this server, or not this version of it.
    case unusable(String)
    /// There is no connection now, or too much already waits to be sent; nothing was sent.
    case notConnected

    /// Whether the same request may succeed later.
    public var isTemporary: Bool {
        switch self {
        case .refused(let status, _, _, _): [404, 408, 409, 425, 429].contains(status) || status >= 500
        case .unreachable, .notConnected: true
        case .unusable: false
        }
    }

    /// How long the server asks to wait before the next try; zero if it does not say.
    var pauseAsked: Duration {
        guard case .refused(_, _, _, let after) = self else { return .zero }
        return after ?? .zero
    }
}
