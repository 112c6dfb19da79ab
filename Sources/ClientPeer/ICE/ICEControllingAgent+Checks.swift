import Base
import Wire

// Everything that depends on time: first checks, retransmissions, nomination and consent.

extension ICEControllingAgent {
    /// Sends the checks that are due, nominates, and detects lost consent.
    package mutating func advance(
        to now: MonotonicTime, authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) -> [Effect] {
        guard !isConsentLost else { return [] }
        if selected != nil, now >= lastConsent + configuration.consentTimeout {
            isConsentLost = true
            return [.consentLost]
        }
        var effects = retransmit(at: now)
        // One first check per pacing interval, best pair first.
        if now >= nextCheck, let index = pairs.firstIndex(where: \.isWaiting) {
            nextCheck = now + configuration.pacing
            let nominates = configuration.nomination == .aggressive
            effects.append(
                check(index, nominates: nominates, at: now, authenticator: authenticator, using: &random))
        }
        if let index = nominee(at: now) {
            effects.append(
                check(index, nominates: true, at: now, authenticator: authenticator, using: &random))
        }
        if let index = consentPair, now >= nextConsentCheck {
            let nominates = configuration.nomination == .regular
            effects.append(
                check(index, nominates: nominates, at: now, authenticator: authenticator, using: &random))
            scheduleConsentCheck(at: now, using: &random)
        }
        if selected == nil, !hasFailed, !pairs.isEmpty, !pairs.contains(where: { !$0.hasFailed }) {
            hasFailed = true
            effects.append(.failed)
        }
        return effects
    }

    /// When `advance` must be called next; nil once consent is lost.
    package var deadline: MonotonicTime? {
        guard !isConsentLost else { return nil }
        var earliest = MonotonicTime.distantFuture
        for pair in pairs {
            if let due = pair.transaction?.due { earliest = min(earliest, due) }
        }
        if pairs.contains(where: \.isWaiting) { earliest = min(earliest, nextCheck) }
        if selected != nil { earliest = min(earliest, lastConsent + configuration.consentTimeout) }
        if consentPair != nil { earliest = min(earliest, nextConsentCheck) }
        if let due = nominationDue { earliest = min(earliest, due) }
        return earliest == .distantFuture ? nil : earliest
    }

    /// RFC 7675 §5.1: intervals vary by a fifth, so that clients do not check in step.
    mutating func scheduleConsentCheck(at now: MonotonicTime, using random: inout some RandomNumberGenerator)
    {
        let interval = configuration.consentInterval.wholeNanoseconds
        // Randomized by a fifth, as RFC 7675 §5.1 requires.
        nextConsentCheck = now.advanced(
            byNanoseconds: Int64.random(
                in: (interval - interval / 5)...(interval + interval / 5), using: &random))
    }

    /// Repeats requests whose timeout has passed, and fails those that were repeated too often.
    private mutating func retransmit(at now: MonotonicTime) -> [Effect] {
        var effects: [Effect] = []
        for index in pairs.indices {
            guard var transaction = pairs[index].transaction, now >= transaction.due else { continue }
            if transaction.sendAgain(at: now) {
                pairs[index].transaction = transaction
                effects.append(.send(transaction.bytes, on: pairs[index].path))
            } else if pairs[index].validity?.isNominated == true {
                // A consent check was not answered; the next one follows, or `consentTimeout` ends the connection.
                pairs[index].transaction = nil
            } else {
                pairs[index].state = .failed
            }
        }
        return effects
    }

    // MARK: Requests

    /// Sends a first, a nominating or a consent check for a pair.
    mutating func check(
        _ index: Int, nominates: Bool, at now: MonotonicTime, authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) -> Effect {
        let id = STUNTransactionID(using: &random)
        var request = STUNWriter(.bindingRequest, transactionID: id)
        request.appendUsername("\(remoteCredentials.ufrag):\(localCredentials.ufrag)")
        request.append(isControlling ? .iceControlling : .iceControlled, tieBreaker)
        // The priority that a peer-reflexive candidate from here would have (RFC 8445 §7.1.1).
        request.append(.priority, 110 << 24 | pairs[index].local.priority & 0xFF_FFFF)
        let nominates = nominates && isControlling
        if nominates { request.append(.useCandidate) }
        let bytes = request.sealed(key: remoteCredentials.key, by: authenticator)

        let isConsentCheck = pairs[index].path == selected && pairs[index].validity?.isNominated == true
        let transaction = Transaction(
            id: id, bytes: bytes, nominates: nominates, isControlling: isControlling,
            timeout: isConsentCheck ? configuration.consentInterval : retransmissionTimeout,
            sendLimit: isConsentCheck ? 1 : Transaction.sendLimit, at: now)
        if pairs[index].validity == nil {
            pairs[index].state = .checking(transaction)
        } else {
            pairs[index].transaction = transaction
        }
        return .send(bytes, on: pairs[index].path)
    }

    /// Grows with the number of checks in progress.
    /// - Source: RFC 8445 §14.3.
    private var retransmissionTimeout: Duration {
        max(configuration.retransmissionTimeout, configuration.pacing * pairs.count { !$0.isSettled })
    }

    // MARK: Nomination and consent

    /// The pair on the selected path; nil while a restart has not validated it again.
    private var consentPair: Int? {
        guard let selected else { return nil }
        return pairs.firstIndex { $0.path == selected && $0.validity?.isNominated == true }
    }

    /// The pair to be nominated now under regular nomination; nil if there is none.
    private func nominee(at now: MonotonicTime) -> Int? {
        guard let due = nominationDue, due <= now else { return nil }
        return pairs.firstIndex { $0.validity != nil }
    }

    /// When to nominate the best valid pair; nil if it is nominated already, or if there is none.
    private var nominationDue: MonotonicTime? {
        guard configuration.nomination == .regular, isControlling, !isPinned,
            let best = pairs.firstIndex(where: { $0.validity != nil }), let validity = pairs[best].validity,
            !validity.isNominated, validity.check?.nominates != true
        else { return nil }
        // With a better pair still in progress, nomination waits for up to `patience`.
        let mayImprove = pairs[..<best].contains { !$0.isSettled }
        guard mayImprove, !pairs.contains(where: { $0.validity?.isNominated == true }) else {
            return validity.since
        }
        let first = pairs.compactMap { $0.validity?.since }.min() ?? validity.since
        return first + configuration.patience
    }
}

extension CheckPair {
    var hasFailed: Bool {
        if case .failed = state { true } else { false }
    }
}
