import Wire

/// How clients of a run reach the server.
enum ClientTransport: String, CaseIterable, Sendable {
    case udp, tcp
    /// By UDP through the relay that the server's answer names (RFC 8656).
    case turn

    /// The transport of the server's candidates that are tried; a relay is reached by UDP.
    var ofCandidates: ICECandidate.Transport { self == .tcp ? .tcp : .udp }
}
