import Base
import Wire

/// A relay's half of TURN towards one client: an address and port, or a connection.
///
/// Takes the client's messages and what comes from its peers, and says what is to be sent where. It owns no socket and
/// no clock: whoever owns it opens the relayed address when it is asked to.
/// - Source: RFC 8656; RFC 8489 §9.2 (long-term credentials).
package struct TURNAgent: Sendable {
    package enum Effect: Equatable, Sendable {
        /// To the client.
        case answer([UInt8])
        /// Open a relayed address and say so by `open`, or that there is no room for one.
        ///
        /// - Parameter isEven: whether its port has to be (RFC 8656 §7.2).
        case allocate(isIPv4: Bool, isEven: Bool)
        /// From the relayed address to a peer.
        case relay([UInt8], to: TransportAddress)
        /// Close the relayed address.
        case release

        /// Whether the client asked for something.
        package var isAnswer: Bool { if case .answer = self { true } else { false } }
    }

    /// A request whose client knows the password.
    struct Request {
        let message: STUNMessage
        let username: String
        let key: [UInt8]
    }

    private let client: TransportAddress
    let policy: TURNPolicy
    var allocation: TURNAllocation?
    var counters = TURNCounters()
    /// An Allocate request that waits for its relayed address.
    private var waiting: Request?
    /// What proved right last, so that it is made only once.
    private var latestKey: (username: String, key: [UInt8])?
    private var requests: RateLimit
    private var traffic: RateLimit

    /// - Parameter client: where its messages come from.
    package init(of client: TransportAddress, by policy: TURNPolicy) {
        self.client = client
        self.policy = policy
        requests = RateLimit(policy.requestsPerSecond)
        traffic = RateLimit(policy.bytesPerSecond)
    }

    package var hasAllocation: Bool { allocation != nil }
    /// When `advance` has something to do.
    package var deadline: MonotonicTime? { allocation?.end }

    /// What was counted since the last call.
    package mutating func takeCounters() -> TURNCounters {
        defer { counters = TURNCounters() }
        return counters
    }

    // MARK: From the client

    /// Takes one message: a datagram, or what the framing of a stream cut out.
    /// - Parameter second: since 1970; user names say until when they are good.
    package mutating func receive(
        _ bytes: Span<UInt8>, at now: MonotonicTime, second: Int, by authenticator: some TURNAuthenticator
    ) -> [Effect] {
        guard traffic.take(bytes.count, at: now) else {
            counters.refusedRate &+= 1
            return []
        }
        if let (channel, range) = ChannelData.read(bytes) {
            return relay(range, of: bytes, to: allocation?.peer(of: channel, at: now), at: now)
        }
        guard let message = try? STUNMessage(parsing: bytes) else {
            counters.malformed &+= 1
            return []
        }
        if message.kind == .sendIndication { return relay(message, bytes, at: now) }
        guard message.kind.isRequest else { return [] }
        guard requests.take(at: now) else {
            counters.refusedRate &+= 1
            return []
        }
        switch message.kind {
        case .bindingRequest: return [.answer(mappedAddress(message))]
        case .allocateRequest, .refreshRequest, .createPermissionRequest, .channelBindRequest:
            return perform(message, bytes, at: now, second: second, by: authenticator)
        default: return [.answer(refuse(message, .badRequest))]
        }
    }

    private mutating func relay(_ message: STUNMessage, _ bytes: Span<UInt8>, at now: MonotonicTime)
        -> [Effect]
    {
        guard let data = message[.data], let peers = try? message.peers(in: bytes), let peer = peers.first
        else {
            counters.malformed &+= 1
            return []
        }
        return relay(data, of: bytes, to: peer, at: now)
    }

    private mutating func relay(
        _ range: Range<Int>, of bytes: Span<UInt8>, to peer: TransportAddress?, at now: MonotonicTime
    ) -> [Effect] {
        guard let peer, let allocation, allocation.end > now,
            allocation.isPermitted(peer, by: policy, at: now),
            let datagram = try? bytes.bytes(range)
        else {
            counters.refusedPeers &+= 1
            return []
        }
        counters.datagramsIn &+= 1
        counters.bytesIn &+= UInt64(datagram.count)
        return [.relay(datagram, to: peer)]
    }

    private func mappedAddress(_ message: STUNMessage) -> [UInt8] {
        var answer = STUNWriter(message.kind.success, transactionID: message.transactionID)
        answer.appendXORMappedAddress(client)
        return answer.sealed()
    }

    // MARK: Requests

    private mutating func perform(
        _ message: STUNMessage, _ bytes: Span<UInt8>, at now: MonotonicTime, second: Int,
        by authenticator: some TURNAuthenticator
    ) -> [Effect] {
        let request: Request
        do throws(Denial) {
            request = try authenticate(message, bytes, at: now, second: second, by: authenticator)
        } catch {
            return [.answer(deny(message, error, at: now, by: authenticator))]
        }
        do throws(RequestRefusal) {
            switch message.kind {
            case .allocateRequest: return try allocate(request, bytes, at: now, by: authenticator)
            case .refreshRequest: return try refresh(request, bytes, at: now, by: authenticator)
            case .createPermissionRequest: try permit(request, bytes, at: now)
            default: try bind(request, bytes, at: now)
            }
            let answer = STUNWriter(message.kind.success, transactionID: message.transactionID)
            return [.answer(answer.sealed(key: request.key, by: authenticator))]
        } catch {
            if error.code == .forbidden { counters.refusedPeers &+= 1 }
            return [.answer(refuse(request, error, by: authenticator))]
        }
    }

    /// Why it is not known who asks.
    private enum Denial: Error {
        /// With what the client needs for the next attempt.
        case unauthenticated, staleNonce
        case badRequest
    }

    /// - Source: RFC 8489 §9.2.4.
    private mutating func authenticate(
        _ message: STUNMessage, _ bytes: Span<UInt8>, at now: MonotonicTime, second: Int,
        by authenticator: some TURNAuthenticator
    ) throws(Denial) -> Request {
        guard message[.messageIntegrity] != nil else { throw .unauthenticated }
        guard let username = message.text(.username, in: bytes), let realm = message.text(.realm, in: bytes),
            let nonce = message.text(.nonce, in: bytes)
        else { throw .badRequest }
        guard policy.nonces.isGood(nonce, of: client, at: now, by: authenticator) else {
            counters.refusedCredentials &+= 1
            throw .staleNonce
        }
        // Whoever has an allocation may keep it: a stream may last longer than a password.
        let isGood = hasAllocation || TURNCredentials.expiry(of: username).map { $0 > second } ?? false
        let key =
            latestKey.flatMap { $0.username == username ? $0.key : nil }
            ?? policy.credentials.key(of: username, realm: policy.realm, by: authenticator)
        guard isGood, realm == policy.realm, let key, message.isAuthentic(bytes, key: key, by: authenticator)
        else {
            counters.refusedCredentials &+= 1
            throw .unauthenticated
        }
        latestKey = (username, key)
        return Request(message: message, username: username, key: key)
    }

    private func deny(
        _ message: STUNMessage, _ reason: Denial, at now: MonotonicTime,
        by authenticator: some TURNAuthenticator
    ) -> [UInt8] {
        var answer = STUNWriter(message.kind.failure, transactionID: message.transactionID)
        switch reason {
        case .badRequest: answer.appendErrorCode(.badRequest)
        case .unauthenticated, .staleNonce:
            answer.appendErrorCode(reason == .staleNonce ? .staleNonce : .unauthenticated)
            answer.append(.realm, Array(policy.realm.utf8))
            answer.append(.nonce, Array(policy.nonces.make(for: client, at: now, by: authenticator).utf8))
        }
        return answer.sealed()
    }

    private func refuse(_ message: STUNMessage, _ code: STUNErrorCode) -> [UInt8] {
        var answer = STUNWriter(message.kind.failure, transactionID: message.transactionID)
        answer.appendErrorCode(code)
        return answer.sealed()
    }

    private func refuse(
        _ request: Request, _ refusal: RequestRefusal, by authenticator: some TURNAuthenticator
    ) -> [UInt8] {
        var answer = STUNWriter(
            request.message.kind.failure, transactionID: request.message.transactionID)
        answer.appendErrorCode(refusal.code)
        if !refusal.unknown.isEmpty { answer.appendUnknownAttributes(refusal.unknown) }
        return answer.sealed(key: request.key, by: authenticator)
    }

    // MARK: Allocations

    private mutating func allocate(
        _ request: Request, _ bytes: Span<UInt8>, at now: MonotonicTime,
        by authenticator: some TURNAuthenticator
    ) throws(RequestRefusal) -> [Effect] {
        if let allocation, allocation.end > now {
            guard allocation.transactionID == request.message.transactionID else { throw .mismatch }
            return [.answer(allocated(allocation, request, authenticator))]
        }
        let (isIPv4, isEven) = try checkAllocation(request, bytes)
        waiting = request
        let old: [Effect] = hasAllocation ? [.release] : []
        allocation = nil
        return old + [.allocate(isIPv4: isIPv4, isEven: isEven)]
    }

    /// Answers the Allocate request that waits.
    /// - Parameter relayed: nil if there is no room for one more.
    package mutating func open(
        _ relayed: TransportAddress?, at now: MonotonicTime, by authenticator: some TURNAuthenticator
    ) -> [Effect] {
        guard let request = waiting else { return [] }
        waiting = nil
        guard let relayed else {
            counters.refusedQuota &+= 1
            return [.answer(refuse(request, .quota, by: authenticator))]
        }
        let made = TURNAllocation(
            relayed, of: request.username, by: request.message.transactionID, until: now + policy.lifetime)
        allocation = made
        counters.allocations &+= 1
        return [.answer(allocated(made, request, authenticator))]
    }

    private func allocated(
        _ allocation: TURNAllocation, _ request: Request, _ authenticator: some TURNAuthenticator
    ) -> [UInt8] {
        let id = request.message.transactionID
        var answer = STUNWriter(request.message.kind.success, transactionID: id)
        answer.append(.xorRelayedAddress, XORAddress.encode(allocation.relayed, id))
        answer.append(.lifetime, UInt32(clamping: policy.lifetime.components.seconds))
        answer.appendXORMappedAddress(client)
        return answer.sealed(key: request.key, by: authenticator)
    }

    private mutating func refresh(
        _ request: Request, _ bytes: Span<UInt8>, at now: MonotonicTime,
        by authenticator: some TURNAuthenticator
    ) throws(RequestRefusal) -> [Effect] {
        let lifetime = try checkRefresh(request, bytes, at: now)
        var answer = STUNWriter(request.message.kind.success, transactionID: request.message.transactionID)
        answer.append(.lifetime, UInt32(clamping: lifetime.components.seconds))
        let sealed = Effect.answer(answer.sealed(key: request.key, by: authenticator))
        guard lifetime > .zero else {
            allocation = nil
            return [.release, sealed]
        }
        allocation?.end = now + lifetime
        return [sealed]
    }

    // MARK: To the client, and time

    /// Appends what came to the relayed address, as the client is to have it.
    ///
    /// - Parameter isStream: whether the client is reached by TCP.
    package mutating func append(
        _ datagram: Span<UInt8>, from peer: TransportAddress, isStream: Bool, at now: MonotonicTime,
        to output: inout [UInt8]
    ) {
        guard let allocation, allocation.end > now, allocation.isPermitted(peer, by: policy, at: now),
            datagram.count <= TURNFrameReader.longest
        else {
            counters.refusedPeers &+= 1
            return
        }
        counters.datagramsOut &+= 1
        counters.bytesOut &+= UInt64(datagram.count)
        if let channel = allocation.channel(of: peer, at: now) {
            ChannelData.append(datagram, of: channel, isPadded: isStream, to: &output)
        } else {
            DataIndication.append(datagram, from: peer, to: &output)
        }
    }

    /// By which channels peers may reach the client without this agent, and until when.
    package func openChannels(
        at now: MonotonicTime
    ) -> [(peer: TransportAddress, number: UInt16, end: MonotonicTime)] {
        guard let allocation, allocation.end > now else { return [] }
        return allocation.openChannels(by: policy, at: now).map { ($0.peer, $0.number.value, $0.end) }
    }

    /// Counts a datagram that is not sent because the client does not read.
    package mutating func drop() { counters.droppedSlow &+= 1 }

    /// Ends an allocation that was not refreshed (RFC 8656 §7).
    package mutating func advance(to now: MonotonicTime) -> [Effect] {
        guard let allocation, allocation.end <= now else { return [] }
        self.allocation = nil
        return [.release]
    }
}
