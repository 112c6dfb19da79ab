import Base
import Wire

/// A client's half of TURN over UDP towards one peer: it has a relayed address made, binds a channel to the peer, and
/// keeps both for as long as it is advanced.
///
/// It owns no socket and no clock: what it has to say goes to the relay, and what comes from there is given to it.
/// - Source: RFC 8656 §7, §8, §12; RFC 8489 §6.2.1 (requests are repeated), §9.2 (long-term credentials).
package struct TURNClientAgent: Sendable {
    /// A relay, and what it wants to hear.
    package struct Relay: Equatable, Sendable {
        /// Over UDP.
        package let address: TransportAddress
        package let username: String
        package let password: String

        package init(address: TransportAddress, username: String, password: String) {
            self.address = address
            self.username = username
            self.password = password
        }
    }

    package enum State: Equatable, Sendable {
        /// Nothing can be sent yet.
        case connecting
        case connected
        /// For good: the relay refused by this code, or does not answer (nil).
        case failed(code: UInt16?)
    }

    private struct Request {
        let kind: STUNKind
        let transactionID: STUNTransactionID
        let bytes: [UInt8]
        var attempts = 1
        var repeatedAt: MonotonicTime
    }

    /// RFC 8489 §6.2.1: RTO, doubled each time, and Rc.
    private static let firstPause = Duration.milliseconds(500)
    private static let mostAttempts = 7
    /// Permissions last 300 s (RFC 8656 §9), and all else longer.
    private static let refreshInterval = Duration.seconds(240)
    /// The first that there is (RFC 8656 §12).
    private static let channel = ChannelNumber(0x4000)

    package let relay: Relay
    package private(set) var state = State.connecting
    private let peer: TransportAddress
    private var realm: String?
    private var nonce = ""
    private var key: [UInt8] = []
    private var request: Request?
    private var refreshAt: MonotonicTime?
    /// To the relay; one request at a time, so there is hardly ever a second one.
    private var messages: [[UInt8]] = []

    /// Begins to ask.
    /// - Parameter peer: what is sent to and heard from, over UDP.
    package init(
        _ relay: Relay, peer: TransportAddress, at now: MonotonicTime,
        by authenticator: some TURNAuthenticator,
        using random: inout some RandomNumberGenerator
    ) {
        self.relay = relay
        self.peer = peer
        ask(.allocateRequest, at: now, by: authenticator, using: &random)
    }

    /// What is to be sent to the relay since the last call.
    package mutating func takeMessages() -> [[UInt8]] {
        defer { messages = [] }
        return messages
    }

    /// A datagram for the peer, as the relay takes it; nil until the client is connected.
    /// - Source: RFC 8656 §12.4.
    package func wrapped(_ datagram: Span<UInt8>) -> [UInt8]? {
        guard state == .connected, let channel = Self.channel else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(ChannelData.headerLength + datagram.count)
        ChannelData.append(datagram, of: channel, isPadded: false, to: &output)
        return output
    }

    /// Says that the address is wanted no longer; whether that is heard nobody waits for.
    /// - Source: RFC 8656 §8 (a lifetime of zero).
    package mutating func giveBack(
        by authenticator: some TURNAuthenticator, using random: inout some RandomNumberGenerator
    ) {
        guard state == .connected else { return }
        let id = STUNTransactionID(using: &random)
        var writer = STUNWriter(.refreshRequest, transactionID: id)
        writer.append(.lifetime, UInt32(0))
        messages.append(sealed(&writer, by: authenticator))
        (request, refreshAt) = (nil, nil)
    }

    // MARK: From the relay

    /// - Returns: where the peer's datagram lies in it; nil for what the relay says itself, and for all else.
    package mutating func receive(
        _ bytes: Span<UInt8>, at now: MonotonicTime, by authenticator: some TURNAuthenticator,
        using random: inout some RandomNumberGenerator
    ) -> Range<Int>? {
        if let (channel, data) = ChannelData.read(bytes) { return channel == Self.channel ? data : nil }
        guard let message = try? STUNMessage(parsing: bytes), let asked = request,
            message.transactionID == asked.transactionID
        else { return nil }
        if message.kind == asked.kind.failure {
            refused(asked, message, bytes, at: now, by: authenticator, using: &random)
        } else if message.kind == asked.kind.success, realm != nil,
            message.isAuthentic(bytes, key: key, by: authenticator)
        {
            request = nil
            granted(asked.kind, at: now, by: authenticator, using: &random)
        }
        return nil
    }

    private mutating func granted(
        _ kind: STUNKind, at now: MonotonicTime, by authenticator: some TURNAuthenticator,
        using random: inout some RandomNumberGenerator
    ) {
        guard kind == .channelBindRequest else {
            // A channel is a permission, too (RFC 8656 §12).
            return ask(.channelBindRequest, at: now, by: authenticator, using: &random)
        }
        state = .connected
        refreshAt = now + Self.refreshInterval
    }

    /// - Source: RFC 8489 §9.2.5.
    private mutating func refused(
        _ asked: Request, _ message: STUNMessage, _ bytes: Span<UInt8>, at now: MonotonicTime,
        by authenticator: some TURNAuthenticator, using random: inout some RandomNumberGenerator
    ) {
        let code = (try? message.errorCode(in: bytes)) ?? nil
        let isNew = code == .unauthenticated && realm == nil || code == .staleNonce
        guard isNew, let realm = message.text(.realm, in: bytes), let nonce = message.text(.nonce, in: bytes),
            let key = authenticator.md5(Array("\(relay.username):\(realm):\(relay.password)".utf8).span)
        else { return fail(code?.number) }
        (self.realm, self.nonce, self.key) = (realm, nonce, key)
        ask(asked.kind, at: now, by: authenticator, using: &random)
    }

    private mutating func fail(_ code: UInt16?) {
        state = .failed(code: code)
        (request, refreshAt) = (nil, nil)
    }

    // MARK: Time

    /// When `advance` has something to do.
    package var deadline: MonotonicTime? { request?.repeatedAt ?? refreshAt }

    package mutating func advance(
        to now: MonotonicTime, by authenticator: some TURNAuthenticator,
        using random: inout some RandomNumberGenerator
    ) {
        if var asked = request {
            guard asked.repeatedAt <= now else { return }
            guard asked.attempts < Self.mostAttempts else { return fail(nil) }
            asked.repeatedAt = now + Self.firstPause * (1 << asked.attempts)
            asked.attempts += 1
            request = asked
            messages.append(asked.bytes)
        } else if let refreshAt, refreshAt <= now {
            self.refreshAt = nil
            ask(.refreshRequest, at: now, by: authenticator, using: &random)
        }
    }

    private mutating func ask(
        _ kind: STUNKind, at now: MonotonicTime, by authenticator: some TURNAuthenticator,
        using random: inout some RandomNumberGenerator
    ) {
        let id = STUNTransactionID(using: &random)
        var writer = STUNWriter(kind, transactionID: id)
        switch kind {
        case .allocateRequest:
            // UDP (RFC 8656 §18.6), of the peer's family.
            writer.append(.requestedTransport, [17, 0, 0, 0])
            if peer.ip.ipv4 == nil { writer.append(.requestedAddressFamily, [2, 0, 0, 0]) }
        case .channelBindRequest:
            writer.append(.channelNumber, UInt32(Self.channel?.value ?? 0) << 16)
            writer.append(.xorPeerAddress, XORAddress.encode(peer, id))
        default: break
        }
        let bytes = sealed(&writer, by: authenticator)
        request = Request(
            kind: kind, transactionID: id, bytes: bytes, repeatedAt: now + Self.firstPause)
        messages.append(bytes)
    }

    /// With what long-term credentials need, once the relay has said what for.
    private func sealed(_ writer: inout STUNWriter, by authenticator: some TURNAuthenticator) -> [UInt8] {
        guard let realm else { return writer.sealed() }
        writer.appendUsername(relay.username)
        writer.append(.realm, Array(realm.utf8))
        writer.append(.nonce, Array(nonce.utf8))
        return writer.sealed(key: key, by: authenticator)
    }
}
