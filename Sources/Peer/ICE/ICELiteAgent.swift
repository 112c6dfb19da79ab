import Base
import Wire

/// The server's half of ICE: answers checks, follows the client's nominations and watches its consent.
///
/// Holds credentials and addresses; owns no socket and no timer. Its own requests only verify that the client
/// receives at an address from which its checks come; see `AddressProof`.
/// - Source: RFC 8445 §2.5 (lite), §7.3 (checks), §9 (restart); RFC 8489 §6.3, §9.1.3 (refusals); RFC 7675
///   (consent).
package struct ICELiteAgent: Sendable {
    /// How long the agent waits for its client.
    package struct Configuration: Sendable {
        /// How long a client may stay silent before it counts as gone (RFC 7675 §5.1).
        ///
        /// The default lets a viewer who passes through a tunnel continue without a new session.
        package var consentTimeout: Duration = .seconds(30)
        /// How long a session waits for its first valid check.
        package var connectTimeout: Duration = .seconds(10)

        package init() {}
    }

    /// What the owner of the agent must do, in order.
    package enum Effect: Equatable, Sendable {
        case send([UInt8], to: TransportAddress)
        /// This address passed a check: datagrams from it belong to this session.
        ///
        /// Repeated for every valid check, so that the latest session wins where two claim one address.
        case admit(TransportAddress)
        /// The address was dropped: the limit was reached, or its TCP connection closed.
        case dismiss(TransportAddress)
        /// Media may flow to this address, which is proven; replaces any earlier one.
        case nominate(TransportAddress)
        /// No address of the client is left; nothing may be sent until the next `nominate`.
        case abandon
        /// Checks with this local ufrag are no longer answered (after an ICE restart).
        case retire(ufrag: String)
        /// The client is gone. Reported once; the agent refuses everything afterwards.
        case consentLost
    }

    /// Why a datagram changed nothing.
    package struct Refusal: Error, Equatable, Sendable {
        /// The reason as a label for metrics.
        package enum Reason: String, Hashable, CaseIterable, Sendable {
            case malformed, notARequest, unknownUfrag, badRequest, unauthenticated, unknownAttribute
            case roleConflict, consentLost
        }

        /// What is wrong with the datagram.
        package let reason: Reason
        /// The response to the datagram's source; nil where none must be sent.
        package let answer: [UInt8]?
    }

    /// Responses per second to requests without a valid password: enough to debug a client, too few for a
    /// reflector.
    package static let answersToStrangers = 5

    private let configuration: Configuration
    private var credentials: ICECredentials
    /// Credentials of a restart that no valid check has used yet.
    private var next: (local: ICECredentials, remote: ICECredentials)?
    /// Counts completed restarts.
    private var generation = 0
    private var pairs = RemotePairs()
    private var requester: BindingRequester
    /// Whether new addresses are sent requests; false while the handshake can still prove the only one.
    private var asksAddresses = false
    /// When the client last proved that it is there; initially when the agent was created.
    package private(set) var lastConsent: MonotonicTime
    private var isConsentLost = false
    /// Whether a valid check ever arrived.
    private var wasReached = false
    private var strangers = PerSecondLimit(Self.answersToStrangers)

    /// - Parameters:
    /// - Parameters:
    ///   - credentials: ours, as in the answer; see `ICECredentials(using:)`.
    ///   - remote: the client's, as in the offer.
    package init(
        credentials: ICECredentials, remote: ICECredentials, configuration: Configuration = Configuration(),
        at now: MonotonicTime
    ) {
        self.credentials = credentials
        requester = BindingRequester(credentials: remote)
        self.configuration = configuration
        lastConsent = now
    }

    /// Where media goes; nil until the client has nominated a pair whose address is proven.
    package var selected: TransportAddress? { pairs.selected }

    /// Where the handshake is sent: as `selected`, or an address that is nominated but not yet proven.
    package var nominated: TransportAddress? { pairs.nominated }

    /// Whether the host at this address has proven that it receives there.
    package func isProven(_ address: TransportAddress) -> Bool { pairs.isProven(address) }

    /// The addresses that passed a check and were not dismissed; at most 8.
    package var addresses: [TransportAddress] { pairs.all.map(\.address) }

    /// When an authentic check or packet last came from this address.
    ///
    /// - Returns: nil for an address that is not known, or not proven while another is selected.
    package func lastHeard(from address: TransportAddress) -> MonotonicTime? {
        guard pairs.isBelieved(address) else { return nil }
        return pairs.all.first { $0.address == address }?.lastHeard
    }

    /// The ufrags a check may use: one, or two during a restart.
    package var localUfrags: [String] {
        [credentials.ufrag] + (next.map { [$0.local.ufrag] } ?? [])
    }

    /// Answers one connectivity check, or processes the response to a request of ours.
    ///
    /// - Parameters:
    ///   - source: where `datagram` came from.
    ///   - random: cryptographically secure outside of tests: transaction ids prove addresses.
    /// - Throws: a `Refusal` for a datagram that changes nothing; its `answer`, if any, goes back to `source`.
    package mutating func receive(
        _ datagram: Span<UInt8>,
        from source: TransportAddress,
        at now: MonotonicTime,
        authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) throws(Refusal) -> [Effect] {
        guard !isConsentLost else { throw Refusal(reason: .consentLost, answer: nil) }
        guard (try? datagram.uint16(at: 0)) != STUNKind.bindingSuccess.rawValue else {
            return try receiveAnswer(datagram, from: source, at: now, authenticator: authenticator)
        }
        let (check, used) = try accept(datagram, at: now, authenticator: authenticator)

        var answer = STUNWriter(.bindingSuccess, transactionID: check.transactionID)
        answer.appendXORMappedAddress(source)
        var effects = [Effect.send(answer.sealed(key: used.key, by: authenticator), to: source)]
        if let next, next.local.ufrag == used.ufrag {
            effects.append(.retire(ufrag: credentials.ufrag))
            (credentials, requester.credentials) = next
            self.next = nil
            generation &+= 1
        }
        wasReached = true
        let before = pairs.nominated
        let forgotten = pairs.heardCheck(
            from: source, generation: generation, nominating: check.useCandidate ? check.priority : nil,
            at: now)
        if pairs.isBelieved(source) { lastConsent = now }
        if let forgotten { effects.append(.dismiss(forgotten)) }
        effects.append(.admit(source))
        if check.useCandidate, pairs.nominate(source, at: now) { effects.append(.nominate(source)) }
        // With a second address the handshake cannot prove either one.
        if check.useCandidate, let before, before != source { asksAddresses = true }
        if asksAddresses, requester.mayFollow(check, to: credentials) { pairs.inquire(source, at: now) }
        return effects + ask(at: now, authenticator: authenticator, using: &random) + follow(at: now)
    }

    /// - Source: RFC 8445 §7.2.5.2.1 (both addresses agree); RFC 8489 §6.3.3, §9.1.4.
    private mutating func receiveAnswer(
        _ datagram: Span<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        authenticator: some MessageAuthenticator
    ) throws(Refusal) -> [Effect] {
        guard let id = pairs.transactionID(of: source) else {
            throw Refusal(reason: .notARequest, answer: nil)
        }
        guard let answer = try? STUNMessage(parsing: datagram), answer.fingerprint(in: datagram) != .wrong,
            answer.unknownRequired.isEmpty
        else {
            throw Refusal(reason: .malformed, answer: nil)
        }
        guard answer.transactionID == id else { throw Refusal(reason: .notARequest, answer: nil) }
        guard answer.isAuthentic(datagram, key: requester.credentials.key, by: authenticator) else {
            throw Refusal(reason: .unauthenticated, answer: nil)
        }
        lastConsent = now
        let isMoved = pairs.answered(source, at: now)
        return (isMoved ? [.nominate(source)] : []) + follow(at: now)
    }

    /// Sends the requests that are due.
    private mutating func ask(
        at now: MonotonicTime, authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) -> [Effect] {
        var effects: [Effect] = []
        while let (address, due) = pairs.nextInquiry, due <= now, requester.take(at: now),
            let id = pairs.ask(address, at: now, using: &random)
        {
            let request = requester.request(
                id, from: credentials, authenticator: authenticator, using: &random)
            effects.append(.send(request, to: address))
        }
        return effects
    }

    /// Records that the DTLS handshake completed: from now on every new address is sent requests.
    ///
    /// - Parameter address: the only address that received our half of the handshake, which proves it, because no
    ///   other host could complete the other half; nil if there were several.
    package mutating func noteHandshake(
        through address: TransportAddress?, at now: MonotonicTime
    ) -> [Effect] {
        guard !isConsentLost else { return [] }
        asksAddresses = true
        guard pairs.madeHandshake(through: address, at: now), let selected = pairs.selected else { return [] }
        return [.nominate(selected)]
    }

    /// Records that media arrived, which shows that the client is there and which pair it uses.
    ///
    /// Hot path: costs a comparison of addresses.
    /// - Parameter source: of an authentic SRTP or SRTCP packet.
    /// - Returns: at most one `nominate`, and that rarely.
    package mutating func noteTraffic(from source: TransportAddress, at now: MonotonicTime) -> Effect? {
        guard !isConsentLost, pairs.heardTraffic(from: source, at: now) else { return nil }
        lastConsent = now
        guard source != pairs.selected else { return nil }
        return follow(at: now).first
    }

    /// Records an authentic packet from an address without a check: a NAT changed the address, and the client does
    /// not check again.
    ///
    /// The address is sent requests as after a check, but only once: later packets cause none.
    package mutating func noteStray(
        from source: TransportAddress, at now: MonotonicTime, authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) -> [Effect] {
        guard !isConsentLost, asksAddresses, !addresses.contains(source) else { return [] }
        let forgotten = pairs.heardCheck(from: source, generation: generation, nominating: nil, at: now)
        _ = pairs.heardTraffic(from: source, at: now)
        pairs.inquire(source, at: now)
        return (forgotten.map { [.dismiss($0)] } ?? []) + [.admit(source)]
            + ask(at: now, authenticator: authenticator, using: &random)
    }

    /// Drops an address whose TCP connection closed: media moves to another address of the client, if there is one.
    package mutating func lose(_ address: TransportAddress, at now: MonotonicTime) -> [Effect] {
        guard !isConsentLost else { return [] }
        let before = pairs.selected
        guard pairs.remove(address, at: now) else { return [] }
        guard pairs.selected != before else { return [.dismiss(address)] }
        return [pairs.selected.map(Effect.nominate) ?? .abandon, .dismiss(address)]
    }

    /// Begins an ICE restart: from now on checks with these credentials are answered too.
    ///
    /// The old credentials of both sides, and the selected address, stay valid until the first valid check with the
    /// new ones.
    package mutating func restart(with credentials: ICECredentials, remote: ICECredentials) -> [Effect] {
        guard !localUfrags.contains(credentials.ufrag) else {
            assertionFailure("an ICE restart needs a new ufrag")
            return []
        }
        let superseded = next?.local
        next = (credentials, remote)
        return superseded.map { [.retire(ufrag: $0.ufrag)] } ?? []
    }

    /// Handles what is due: ends consent, sends requests to unproven addresses, follows a client that has moved.
    package mutating func advance(
        to now: MonotonicTime, authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) -> [Effect] {
        guard !isConsentLost else { return [] }
        guard now < consentDeadline else {
            isConsentLost = true
            return [.consentLost]
        }
        return ask(at: now, authenticator: authenticator, using: &random) + follow(at: now)
    }

    /// When `advance` must be called next; nil once consent is lost.
    ///
    /// Traffic only postpones it, so it need not be read after every packet.
    package var deadline: MonotonicTime? {
        guard !isConsentLost else { return nil }
        var deadline = consentDeadline
        if let takeover = pairs.takeover { deadline = min(deadline, takeover) }
        if let due = pairs.nextInquiry?.due { deadline = min(deadline, max(due, requester.earliest)) }
        return deadline
    }

    private var consentDeadline: MonotonicTime {
        lastConsent + (wasReached ? configuration.consentTimeout : configuration.connectTimeout)
    }

    private mutating func follow(at now: MonotonicTime) -> [Effect] {
        guard pairs.followUse(at: now), let selected = pairs.selected else { return [] }
        return [.nominate(selected)]
    }
}

extension ICELiteAgent {
    /// Verifies a check, in the order of RFC 8489 §6.3 and §9.1.3.
    ///
    /// - Returns: the check, and the credentials it was made with.
    private mutating func accept(
        _ datagram: Span<UInt8>, at now: MonotonicTime, authenticator: some MessageAuthenticator
    ) throws(Refusal) -> (STUNMessage, ICECredentials) {
        guard let check = try? STUNMessage(parsing: datagram), check.fingerprint(in: datagram) != .wrong
        else {
            throw Refusal(reason: .malformed, answer: nil)
        }
        guard check.kind == .bindingRequest else { throw Refusal(reason: .notARequest, answer: nil) }
        guard check[.username] != nil, check[.messageIntegrity] != nil else {
            throw refusal(of: check, .badRequest, .badRequest, at: now)
        }
        // Deviates from RFC 8489 §9.1.3, which requires a 401 response, because an open port that answers any
        // sender is a reflector. The remote half of the user name is ignored: the password is proof enough.
        guard let ufrag = STUNMessage.localUfrag(ofRequest: datagram),
            let used = [credentials, next?.local].compactMap({ $0 }).first(where: { $0.ufrag == ufrag })
        else { throw Refusal(reason: .unknownUfrag, answer: nil) }
        guard check.isAuthentic(datagram, key: used.key, by: authenticator) else {
            throw refusal(of: check, .unauthenticated, .unauthenticated, at: now)
        }

        func sealed(_ reason: Refusal.Reason, _ code: STUNErrorCode) -> Refusal {
            var answer = Self.error(code, answering: check)
            if reason == .unknownAttribute { answer.appendUnknownAttributes(check.unknownRequired) }
            return Refusal(reason: reason, answer: answer.sealed(key: used.key, by: authenticator))
        }
        guard check.unknownRequired.isEmpty else { throw sealed(.unknownAttribute, .unknownAttribute) }
        // RFC 8445 §7.1.1 and §7.1: both are required. Deviates from RFC 8489 §6.3, which drops messages without
        // FINGERPRINT, because an error helps the author of a client, and this sender knows the password.
        guard check.fingerprint(in: datagram) == .right, check.priority != nil else {
            throw sealed(.badRequest, .badRequest)
        }
        // Deviates from RFC 8445 §7.3.1.1, which compares tie-breakers, because a lite agent whose peer is full can
        // only be controlled (§6.1.1).
        guard check.iceControlled == nil else { throw sealed(.roleConflict, .roleConflict) }
        return (check, used)
    }

    /// Refuses a check without a valid password; the number of responses to such checks is limited.
    private mutating func refusal(
        of check: STUNMessage, _ reason: Refusal.Reason, _ code: STUNErrorCode, at now: MonotonicTime
    ) -> Refusal {
        guard strangers.take(at: now) else { return Refusal(reason: reason, answer: nil) }
        return Refusal(reason: reason, answer: Self.error(code, answering: check).sealed())
    }

    private static func error(_ code: STUNErrorCode, answering check: STUNMessage) -> STUNWriter {
        var answer = STUNWriter(.bindingError, transactionID: check.transactionID)
        answer.appendErrorCode(code)
        return answer
    }
}
