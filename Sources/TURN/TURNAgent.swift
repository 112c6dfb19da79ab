import Base
import Wire

/// The relay's side of TURN towards one client, which is identified by an address and port or by a connection.
///
/// It receives the client's messages and the datagrams of its peers, and returns what to send where. It owns no
/// socket and no clock: its owner opens the relayed address when the agent requests one.
/// - Source: RFC 8656; RFC 8489 §9.2 (long-term credentials).
package struct TURNAgent: Sendable {
    /// What the owner has to do.
    package enum Effect: Equatable, Sendable {
        /// Send this to the client.
        case answer([UInt8])
        /// Open a relayed address and report it by `open`, also if there is no room for one.
        ///
        /// - Parameter isEven: whether the port has to be even (RFC 8656 §7.2).
        case allocate(isIPv4: Bool, isEven: Bool)
        /// Send this from the relayed address to a peer.
        case relay([UInt8], to: TransportAddress)
        /// Close the relayed address.
        case release

        /// Whether this is a response to a request of the client.
        package var isAnswer: Bool { if case .answer = self { true } else { false } }
    }

    /// A request that the client has signed with the right password.
    struct Request {
        let message: STUNMessage
        let username: String
        let key: [UInt8]
    }

    /// Where the client's messages come from; nonces are valid for this address only.
    private let client: TransportAddress
    let policy: TURNPolicy
    /// Nil until a request for one was granted, and again after it has ended.
    var allocation: TURNAllocation?
    var counters = TURNCounters()
    /// The Allocate request for which the owner is opening a relayed address.
    private var waiting: Request?
    /// User name and key of the latest authentic request, so that the key is derived only once.
    private var latestKey: (username: String, key: [UInt8])?
    /// Limits the client's requests per second; each costs an HMAC.
    private var requests: RateLimit
    /// Limits the bytes that the client sends per second.
    private var traffic: RateLimit
    /// Limits the messages that the client sends per second.
    private var messages: RateLimit

    /// - Parameters:
    ///   - client: the address that its messages come from.
    ///   - policy: limits, peers and credentials, the same for all clients.
    package init(of client: TransportAddress, by policy: TURNPolicy) {
        self.client = client
        self.policy = policy
        requests = RateLimit(policy.requestsPerSecond)
        traffic = RateLimit(policy.bytesPerSecond)
        messages = RateLimit(policy.messagesPerSecond)
    }

    /// Whether the client has a relayed address.
    package var hasAllocation: Bool { allocation != nil }
    /// When `advance` has to be called next; nil without an allocation.
    package var deadline: MonotonicTime? { allocation?.end }

    /// Takes the counts since the last call.
    package mutating func takeCounters() -> TURNCounters {
        defer { counters = TURNCounters() }
        return counters
    }

    // MARK: From the client

    /// Receives one message: a datagram, or a frame that was cut out of a stream.
    ///
    /// Requests are answered, also if they are refused, but not beyond the rate limit. Datagrams for peers are relayed
    /// or dropped without a response.
    /// - Parameter second: seconds since 1970, against which the expiry in user names is checked.
    package mutating func receive(
        _ bytes: Span<UInt8>, at now: MonotonicTime, second: Int, by authenticator: some TURNAuthenticator
    ) -> [Effect] {
        guard messages.take(at: now), traffic.take(bytes.count, at: now) else {
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

    /// Relays the contents of a Send indication.
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

    /// Relays a part of the message to a peer, if there is an allocation and the peer is permitted.
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

    /// The response to a Binding request: the address from which the relay sees the client.
    private func mappedAddress(_ message: STUNMessage) -> [UInt8] {
        var answer = STUNWriter(message.kind.success, transactionID: message.transactionID)
        answer.appendXORMappedAddress(client)
        return answer.sealed()
    }

    // MARK: Requests

    /// Authenticates and performs a request, and signs the response.
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

    /// Why a request is not authentic.
    private enum Denial: Error {
        /// The response contains realm and nonce, which the client needs to try again.
        case unauthenticated, staleNonce
        case badRequest
    }

    /// Checks user name, nonce and signature of a request.
    ///
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
        // Whoever has an allocation may keep it after the credentials have expired, because a stream may last longer.
        let keepsOne = allocation.map { $0.end > now && $0.username == username } ?? false
        let isGood = keepsOne || TURNCredentials.expiry(of: username).map { $0 > second } ?? false
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

    /// The response to a request that is not authentic.
    ///
    /// It is not signed, because the client may not have the key.
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

    /// An error response without a signature.
    private func refuse(_ message: STUNMessage, _ code: STUNErrorCode) -> [UInt8] {
        var answer = STUNWriter(message.kind.failure, transactionID: message.transactionID)
        answer.appendErrorCode(code)
        return answer.sealed()
    }

    /// An error response that is signed with the client's key.
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

    /// Grants a repeated request again, or requests a relayed address from the owner.
    private mutating func allocate(
        _ request: Request, _ bytes: Span<UInt8>, at now: MonotonicTime,
        by authenticator: some TURNAuthenticator
    ) throws(RequestRefusal) -> [Effect] {
        // The same transaction is a retransmission, whose response may have been lost.
        if let allocation, allocation.end > now {
            guard allocation.transactionID == request.message.transactionID else { throw .mismatch }
            return [.answer(allocated(allocation, request, authenticator))]
        }
        let (isIPv4, isEven) = try checkAllocation(request, bytes)
        waiting = request
        // The old allocation has expired, but `advance` has not been called yet.
        let old: [Effect] = hasAllocation ? [.release] : []
        allocation = nil
        return old + [.allocate(isIPv4: isIPv4, isEven: isEven)]
    }

    /// Completes the Allocate request for which a relayed address was requested.
    /// - Parameter relayed: nil if there is no room for another one.
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

    /// The response that grants an allocation.
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

    /// Extends an allocation, or ends it if the client requests a lifetime of 0.
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

    /// Appends a datagram of a peer to `output`, in the format for the client.
    ///
    /// Uses the peer's channel, or a Data indication if it has none. A datagram of a peer that is not permitted is
    /// dropped.
    /// - Parameter isStream: whether the client is connected by TCP or TLS.
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

    /// The channels by which others may send to the client without this agent, and when each ends.
    package func openChannels(
        at now: MonotonicTime
    ) -> [(peer: TransportAddress, number: UInt16, end: MonotonicTime)] {
        guard let allocation, allocation.end > now else { return [] }
        return allocation.openChannels(by: policy, at: now).map { ($0.peer, $0.number.value, $0.end) }
    }

    /// Counts a datagram that was dropped because the client reads too slowly.
    package mutating func drop() { counters.droppedSlow &+= 1 }

    /// Ends the allocation if it was not refreshed in time (RFC 8656 §7).
    package mutating func advance(to now: MonotonicTime) -> [Effect] {
        guard let allocation, allocation.end <= now else { return [] }
        self.allocation = nil
        return [.release]
    }
}
