import Base
import Wire

// Handling of the server's answers to checks.

extension ICEControllingAgent {
    /// Handles an answer, and sends checks that become possible by it.
    ///
    /// - Parameters:
    ///   - local: the socket that received the datagram.
    ///   - source: the sender's address.
    package mutating func receive(
        _ datagram: Span<UInt8>, to local: TransportAddress, from source: TransportAddress,
        at now: MonotonicTime, authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) throws(Refusal) -> [Effect] {
        guard let answer = try? STUNMessage(parsing: datagram), answer.fingerprint(in: datagram) != .wrong
        else {
            throw .malformed
        }
        guard answer.kind == .bindingSuccess || answer.kind == .bindingError else { throw .notAnAnswer }
        guard let index = pairs.firstIndex(where: { $0.transaction?.id == answer.transactionID }),
            let transaction = pairs[index].transaction
        else { throw .unknownTransaction }
        let isAuthentic = answer.isAuthentic(datagram, key: remoteCredentials.key, by: authenticator)

        var effects: [Effect] = []
        if answer.kind == .bindingError {
            let code = (try? answer.errorCode(in: datagram)) ?? STUNErrorCode(500)
            // Only 400 and 401 may be unauthenticated (RFC 8489 §9.1.4).
            guard isAuthentic || answer[.messageIntegrity] == nil && (400...401).contains(code.number) else {
                throw .unauthenticated
            }
            fail(index, transaction, with: code, at: now, using: &random)
        } else {
            guard isAuthentic else { throw .unauthenticated }
            if pairs[index].path == Path(local: local, remote: source) {
                let mapped = (try? answer.xorMappedAddress(in: datagram)) ?? nil
                effects += succeed(index, transaction, mapped: mapped, at: now, using: &random)
            } else {
                // The answer took another path than the request (RFC 8445 §7.2.5.2.1).
                pairs[index].state = .failed
            }
        }
        return effects + advance(to: now, authenticator: authenticator, using: &random)
    }

    /// Validates the pair, and selects it if its nomination was answered.
    private mutating func succeed(
        _ index: Int, _ transaction: Transaction, mapped: TransportAddress?, at now: MonotonicTime,
        using random: inout some RandomNumberGenerator
    ) -> [Effect] {
        // After a retransmission it is unknown which sending was answered.
        if transaction.sent == 1 { roundTripTime = now - transaction.firstSent }
        var validity = pairs[index].validity ?? CheckPair.Validity(since: now)
        validity.check = nil
        if transaction.nominates { validity.isNominated = true }
        pairs[index].state = .valid(validity)

        let path = pairs[index].path
        if path == selected {
            lastConsent = now
            mappedAddress = mapped
        }
        guard transaction.nominates, path != selected, isPreferred(index) else { return [] }
        selected = path
        lastConsent = now
        mappedAddress = mapped
        scheduleConsentCheck(at: now, using: &random)
        return [.select(path)]
    }

    /// Whether a newly nominated pair replaces the selected one; under aggressive nomination only a better one does.
    private func isPreferred(_ index: Int) -> Bool {
        guard configuration.nomination == .aggressive, !isPinned,
            let current = pairs.first(where: { $0.path == selected && $0.validity?.isNominated == true })
        else { return true }
        return pairs[index].priority > current.priority
    }

    /// Fails the check, or repeats it after a role conflict.
    private mutating func fail(
        _ index: Int, _ transaction: Transaction, with code: STUNErrorCode, at now: MonotonicTime,
        using random: inout some RandomNumberGenerator
    ) {
        guard code == .roleConflict else {
            if pairs[index].validity == nil {
                pairs[index].state = .failed
            } else {
                pairs[index].transaction = nil
            }
            return
        }
        // RFC 8445 §7.2.5.1: switch the role, once for any number of such answers, and check again.
        if transaction.isControlling == isControlling {
            isControlling.toggle()
            tieBreaker = random.next()
            pairs = pairs.map {
                var pair = CheckPair(local: $0.local, remote: $0.remote, isControlling: isControlling)
                pair.state = $0.state
                return pair
            }
        }
        pairs[index].state = .waiting
        pairs.sort { $0.priority > $1.priority }
        nextCheck = now
    }
}
