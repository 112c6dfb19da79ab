import Base
import Wire

/// A client's side of TURN over UDP with one peer: allocates a relayed address, binds a channel to the peer, and
/// refreshes both.
///
/// It owns no socket and no clock: the owner sends its messages to the relay and passes on what arrives from there.
/// - Source: RFC 8656 §7, §8, §12; RFC 8489 §6.2.1 (requests are repeated), §9.2 (long-term credentials).
package struct TURNClientAgent: Sendable {
    /// A relay's address and the credentials for it.
    package struct Relay: Equatable, Sendable {
        /// Where the relay listens, over UDP.
        package let address: TransportAddress
        /// User name for long-term credentials; for a relay of this server it contains the expiry.
        package let username: String
        /// The password that belongs to the user name.
        package let password: String

        /// - Parameter address: where the relay listens, over UDP.
        package init(address: TransportAddress, username: String, password: String) {
            self.address = address
            self.username = username
            self.password = password
        }
    }

    /// How far the connection through the relay has come.
    package enum State: Equatable, Sendable {
        /// The allocation or the channel is not granted yet; nothing can be sent.
        case connecting
        case connected
        /// Final: the relay refused with this code; nil if it does not answer.
        case failed(code: UInt16?)
    }

    /// The request that awaits its response; there is never more than one.
    private struct Request {
        let kind: STUNKind
        let transactionID: STUNTransactionID
        let bytes: [UInt8]
        var attempts = 1
        /// When it is retransmitted next.
        var repeatedAt: MonotonicTime
    }

    /// The first retransmission timeout, which doubles each time (RTO), and the number of transmissions (Rc).
    ///
    /// - Source: RFC 8489 §6.2.1.
    private static let firstPause = Duration.milliseconds(500)
    private static let mostAttempts = 7
    /// Stale nonces in a row that are believed; a relay that calls every nonce stale would be asked without end.
    private static let mostStaleNonces = 8
    /// Between two refreshes: permissions last 300 s (RFC 8656 §9), allocations and channels longer.
    private static let refreshInterval = Duration.seconds(240)
    /// The first number that may be bound (RFC 8656 §12).
    private static let channel = ChannelNumber(0x4000)

    /// The relay that it uses.
    package let relay: Relay
    /// How far it has come; `receive` and `advance` change it.
    package private(set) var state = State.connecting
    private let peer: TransportAddress
    /// Realm, nonce and key as of the relay's latest error response; no realm before the first.
    private var realm: String?
    private var nonce = ""
    private var key: [UInt8] = []
    /// Nonces that the relay called stale since it last granted a request.
    private var staleNonces = 0
    /// Whether the relay has granted an address that was not given back.
    private var hasAddress = false
    /// Nil while nothing is to be answered.
    private var request: Request?
    /// When to refresh; nil until connected, and while a refresh is under way.
    private var refreshAt: MonotonicTime?
    /// Messages for the relay; rarely more than one, since requests are made one at a time.
    private var messages: [[UInt8]] = []

    /// Starts the allocation.
    /// - Parameter peer: the address to communicate with, over UDP.
    package init(
        _ relay: Relay, peer: TransportAddress, at now: MonotonicTime,
        by authenticator: some TURNAuthenticator,
        using random: inout some RandomNumberGenerator
    ) {
        self.relay = relay
        self.peer = peer
        ask(.allocateRequest, at: now, by: authenticator, using: &random)
    }

    /// Takes the messages to be sent to the relay.
    package mutating func takeMessages() -> [[UInt8]] {
        defer { messages = [] }
        return messages
    }

    /// Wraps a datagram for the peer in the channel; nil until the client is connected.
    /// - Source: RFC 8656 §12.4.
    package func wrapped(_ datagram: Span<UInt8>) -> [UInt8]? {
        guard state == .connected, let channel = Self.channel else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(ChannelData.headerLength + datagram.count)
        ChannelData.append(datagram, of: channel, isPadded: false, to: &output)
        return output
    }

    /// Releases the allocation, without retransmission: if the message is lost, the allocation expires.
    /// - Source: RFC 8656 §8 (a lifetime of zero).
    package mutating func giveBack(
        by authenticator: some TURNAuthenticator, using random: inout some RandomNumberGenerator
    ) {
        guard hasAddress else { return }
        hasAddress = false
        let id = STUNTransactionID(using: &random)
        var writer = STUNWriter(.refreshRequest, transactionID: id)
        writer.append(.lifetime, UInt32(0))
        messages.append(sealed(&writer, by: authenticator))
        (request, refreshAt) = (nil, nil)
    }

    // MARK: From the relay

    /// Receives a datagram from the relay.
    ///
    /// - Returns: the range of the peer's datagram in it; nil if it is the relay's own message or nothing known.
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

    /// Continues after a request was granted: with the channel, or with the wait for the next refresh.
    private mutating func granted(
        _ kind: STUNKind, at now: MonotonicTime, by authenticator: some TURNAuthenticator,
        using random: inout some RandomNumberGenerator
    ) {
        staleNonces = 0
        if kind == .allocateRequest { hasAddress = true }
        guard kind == .channelBindRequest else {
            // Binding the channel also extends the permission (RFC 8656 §12).
            return ask(.channelBindRequest, at: now, by: authenticator, using: &random)
        }
        state = .connected
        refreshAt = now + Self.refreshInterval
    }

    /// Repeats a request with the realm and nonce of the error response, or gives up.
    ///
    /// A first 401 and now and then a 438 are expected; a second 401 means that the credentials are wrong.
    /// - Source: RFC 8489 §9.2.5.
    private mutating func refused(
        _ asked: Request, _ message: STUNMessage, _ bytes: Span<UInt8>, at now: MonotonicTime,
        by authenticator: some TURNAuthenticator, using random: inout some RandomNumberGenerator
    ) {
        let code = (try? message.errorCode(in: bytes)) ?? nil
        if code == .staleNonce { staleNonces += 1 }
        let isNew =
            code == .unauthenticated && realm == nil
            || code == .staleNonce && staleNonces <= Self.mostStaleNonces
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

    /// When `advance` has to be called next; nil if nothing is scheduled.
    package var deadline: MonotonicTime? { request?.repeatedAt ?? refreshAt }

    /// Retransmits the current request, gives up after the last attempt, or starts a refresh.
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

    /// Sends a new request, which replaces the current one.
    private mutating func ask(
        _ kind: STUNKind, at now: MonotonicTime, by authenticator: some TURNAuthenticator,
        using random: inout some RandomNumberGenerator
    ) {
        let id = STUNTransactionID(using: &random)
        var writer = STUNWriter(kind, transactionID: id)
        switch kind {
        case .allocateRequest:
            // UDP (RFC 8656 §18.8), and the address family of the peer (RFC 8656 §18.6).
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

    /// Completes a message, with credentials once the relay has named realm and nonce.
    private func sealed(_ writer: inout STUNWriter, by authenticator: some TURNAuthenticator) -> [UInt8] {
        guard let realm else { return writer.sealed() }
        writer.appendUsername(relay.username)
        writer.append(.realm, Array(realm.utf8))
        writer.append(.nonce, Array(nonce.utf8))
        return writer.sealed(key: key, by: authenticator)
    }
}
