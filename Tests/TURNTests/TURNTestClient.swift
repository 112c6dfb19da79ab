import Base
import Crypto
import Foundation
@testable import TURN
import TestSupport
import Wire

/// As a node's is.
struct TestAuthenticator: TURNAuthenticator {
    func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] { HMAC.sha1(key: key, message) }
    func md5(_ message: Span<UInt8>) -> [UInt8]? { MessageDigest.md5(message) }
}

/// A client of a relay, as tests play it: it signs what it asks, and looks at what it is answered.
struct TURNTestClient {
    static let secret = Array("north wind".utf8)
    static let address = TransportAddress(ip: IPAddress(ipv4: 0xC633_6401), port: 50_000)
    static let relayed = TransportAddress(ip: IPAddress(ipv4: 0x0A00_0001), port: 40_000)
    /// This server's own, of which there are two.
    static let peer = TransportAddress(ip: IPAddress(ipv4: 0xCB00_7107), port: 7_000)
    static let otherPeer = TransportAddress(ip: IPAddress(ipv4: 0xCB00_7107), port: 7_001)
    /// Somebody else.
    static let stranger = TransportAddress(ip: IPAddress(ipv4: 0x0808_0808), port: 53)
    static let authenticator = TestAuthenticator()
    /// Of 1970, in which user names are good.
    static let second = 1_000_000

    static var policy: TURNPolicy {
        TURNPolicy(
            realm: "rostrum", credentials: TURNCredentials(secret: Secret(secret)),
            nonceKey: Secret([UInt8](repeating: 7, count: 16)), peers: [peer, otherPeer])
    }

    var agent: TURNAgent
    /// Of 1970, when its messages arrive.
    var present = TURNTestClient.second
    var username = "\(second + 60):guest"
    /// Nil for the right one.
    var password: String?
    var realm = "rostrum"
    var nonce = ""
    private var transaction: UInt64 = 0
    /// What the agent had relayed, and what it let go.
    private(set) var relayed: [(datagram: [UInt8], peer: TransportAddress)] = []
    private(set) var releases = 0
    /// Whether the last address that was opened had to have an even port.
    private(set) var wantsEvenPort = false
    /// What an Allocate request gets.
    var room: TransportAddress? = TURNTestClient.relayed

    init(_ policy: TURNPolicy = policy) {
        agent = TURNAgent(of: Self.address, by: policy)
    }

    static func time(_ seconds: Int64) -> MonotonicTime { .zero + .seconds(seconds) }

    /// As the gateway makes them (draft-uberti-behave-turn-rest-00 §2.2).
    static func password(of username: String) -> String {
        let code = authenticator.hmacSHA1(key: secret.span, Array(username.utf8).span)
        return Data(code).base64EncodedString()
    }

    var key: [UInt8] {
        let message = Array("\(username):\(realm):\(password ?? Self.password(of: username))".utf8)
        return MessageDigest.md5(message.span) ?? []
    }

    /// A request with what long-term credentials need.
    mutating func signed(_ kind: STUNKind, _ fill: (inout STUNWriter, STUNTransactionID) -> Void) -> [UInt8] {
        transaction += 1
        let id = STUNTransactionID(high: 1, low: transaction)
        var writer = STUNWriter(kind, transactionID: id)
        fill(&writer, id)
        writer.appendUsername(username)
        writer.append(.realm, Array(realm.utf8))
        writer.append(.nonce, Array(nonce.utf8))
        return writer.sealed(key: key, by: Self.authenticator)
    }

    /// What the agent answers to a message; nil where it says nothing.
    mutating func send(_ message: [UInt8], at seconds: Int64 = 1) throws(WireError) -> ReceivedSTUN? {
        var answer: ReceivedSTUN?
        var effects = agent.receive(
            message.span, at: Self.time(seconds), second: present, by: Self.authenticator)[...]
        while let effect = effects.popFirst() {
            switch effect {
            case .answer(let bytes): answer = try ReceivedSTUN(bytes)
            case .allocate(_, let isEven):
                wantsEvenPort = isEven
                effects += agent.open(room, at: Self.time(seconds), by: Self.authenticator)
            case .relay(let datagram, let peer): relayed.append((datagram, peer))
            case .release: releases += 1
            }
        }
        return answer
    }

    mutating func allocate(
        at seconds: Int64 = 1, _ more: (inout STUNWriter) -> Void = { _ in }
    ) throws(WireError) -> ReceivedSTUN? {
        if nonce.isEmpty { try learnNonce(at: seconds) }
        let request = signed(.allocateRequest) { writer, _ in
            writer.append(.requestedTransport, [17, 0, 0, 0])
            more(&writer)
        }
        return try send(request, at: seconds)
    }

    /// Asks without credentials, which is answered with what they need.
    mutating func learnNonce(at seconds: Int64 = 1) throws(WireError) {
        let request = STUNWriter(.allocateRequest, transactionID: STUNTransactionID(high: 0, low: 0))
        guard let answer = try send(request.sealed(), at: seconds) else { return }
        nonce = answer.message.text(.nonce, in: answer.bytes.span) ?? ""
    }

    mutating func refresh(_ lifetime: UInt32, at seconds: Int64 = 1) throws(WireError) -> ReceivedSTUN? {
        try send(signed(.refreshRequest) { writer, _ in writer.append(.lifetime, lifetime) }, at: seconds)
    }

    mutating func permit(_ peers: TransportAddress..., at seconds: Int64 = 1) throws(WireError)
        -> ReceivedSTUN?
    {
        let request = signed(.createPermissionRequest) { writer, id in
            for peer in peers { writer.append(.xorPeerAddress, XORAddress.encode(peer, id)) }
        }
        return try send(request, at: seconds)
    }

    mutating func bind(
        _ number: UInt16, to peer: TransportAddress, at seconds: Int64 = 1
    ) throws(WireError) -> ReceivedSTUN? {
        let request = signed(.channelBindRequest) { writer, id in
            writer.append(.channelNumber, UInt32(number) << 16)
            writer.append(.xorPeerAddress, XORAddress.encode(peer, id))
        }
        return try send(request, at: seconds)
    }

    /// A Send indication, which nobody signs.
    mutating func indicate(_ data: [UInt8], to peer: TransportAddress, at seconds: Int64 = 1)
        throws(WireError)
    {
        let id = STUNTransactionID(high: 2, low: 2)
        var writer = STUNWriter(.sendIndication, transactionID: id)
        writer.append(.xorPeerAddress, XORAddress.encode(peer, id))
        writer.append(.data, data)
        _ = try send(writer.sealed(), at: seconds)
    }

    mutating func say(_ data: [UInt8], by number: UInt16, at seconds: Int64 = 1) throws(WireError) {
        var message: [UInt8] = []
        message.append(bigEndian: number)
        message.append(bigEndian: UInt16(data.count))
        _ = try send(message + data, at: seconds)
    }

    /// What a client gets of a datagram of a peer; empty for nothing.
    mutating func hear(
        _ data: [UInt8], from peer: TransportAddress, isStream: Bool = false, at seconds: Int64 = 1
    ) -> [UInt8] {
        var output: [UInt8] = []
        agent.append(data.span, from: peer, isStream: isStream, at: Self.time(seconds), to: &output)
        return output
    }
}

extension ReceivedSTUN {
    var kind: STUNKind { message.kind }

    func address(_ type: STUNAttribute) throws(WireError) -> TransportAddress? {
        guard let range = message[type] else { return nil }
        return try XORAddress.read(range, of: bytes.span, message.transactionID)
    }

    func number(_ type: STUNAttribute) throws(WireError) -> UInt32? {
        try message.uint32(type, in: bytes.span)
    }
}
