/// Why something that an app asked for did not happen.
public enum RostrumError: Error, Equatable, Sendable {
    /// The server refused it.
    ///
    /// - `status`: of HTTP, such as 403.
    /// - `rule`: the name of the rule that forbids it, such as `not-host`; nil where the server names none.
    /// - `detail`: in words, for people.
    /// - `retryAfter`: how long the server asks to wait before the next try; nil where it does not say.
    case refused(status: Int, rule: String?, detail: String, retryAfter: Duration?)
    /// The server cannot be reached; the words are the system's.
    case unreachable(String)
    /// What came makes no sense: not this server, or not this version of it.
    case unusable(String)
    /// There is no connection at the moment, or too much waits on it already; nothing was sent.
    case notConnected

    /// Whether the same may succeed later without anybody changing it.
    public var isTemporary: Bool {
        switch self {
        case .refused(let status, _, _, _): [404, 408, 409, 425, 429].contains(status) || status >= 500
        case .unreachable, .notConnected: true
        case .unusable: false
        }
    }
}
