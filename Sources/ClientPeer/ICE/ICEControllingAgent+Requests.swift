import Base
import Wire

// Answers to the server's checks: a full agent sends them, and a lite one that verifies a new address.

extension ICEControllingAgent {
    /// Answers a check of the server.
    ///
    /// Peer-reflexive candidates are not learned from checks: a load test must not send anything to addresses that the
    /// server's answer did not name.
    /// - Parameters:
    ///   - local: the socket that received the check.
    ///   - source: the sender's address.
    /// - Source: RFC 8445 §7.3; RFC 8489 §9.1.3.
    package func answer(
        _ datagram: Span<UInt8>, to local: TransportAddress, from source: TransportAddress,
        authenticator: some MessageAuthenticator
    ) throws(Refusal) -> Effect {
        guard let check = try? STUNMessage(parsing: datagram), check.fingerprint(in: datagram) != .wrong,
            check.kind == .bindingRequest
        else { throw .malformed }
        guard STUNMessage.localUfrag(ofRequest: datagram) == localCredentials.ufrag,
            check.isAuthentic(datagram, key: localCredentials.key, by: authenticator)
        else { throw .unauthenticated }
        let path = Path(local: local, remote: source)
        // Deviates from RFC 8445 §7.3.1.1, which compares tie-breakers, because the offerer always controls here.
        guard check.iceControlling == nil || !isControlling else {
            var refusal = STUNWriter(.bindingError, transactionID: check.transactionID)
            refusal.appendErrorCode(.roleConflict)
            return .send(refusal.sealed(key: localCredentials.key, by: authenticator), on: path)
        }
        var answer = STUNWriter(.bindingSuccess, transactionID: check.transactionID)
        answer.appendXORMappedAddress(source)
        return .send(answer.sealed(key: localCredentials.key, by: authenticator), on: path)
    }
}
