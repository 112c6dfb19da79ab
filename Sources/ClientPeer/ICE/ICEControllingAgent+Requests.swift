import Base
import Wire

// What a server asks: one that is a full agent itself, or a lite one that wants to know who is at a new address.

extension ICEControllingAgent {
    /// Answers a check of the server's.
    ///
    /// Checks teach no new addresses: a load test sends nothing to where the server's answer did not point.
    /// - Parameters:
    ///   - local: the socket of ours the check came to.
    ///   - source: where it came from.
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
        // Deviates from RFC 8445 §7.3.1.1, which compares tie-breakers, because who made the offer controls.
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
