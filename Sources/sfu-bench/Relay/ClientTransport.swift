import Wire

/// How clients of a run reach the server.
enum ClientTransport: String, CaseIterable, Sendable {
    case udp, tcp
    /// By UDP through the relay that the server's answer names (RFC 8656).
    case turn

    /// Of the server's candidates that are tried.
    var ofCandidates: ICECandidate.Transport { self == .tcp ? .tcp : .udp }
}
