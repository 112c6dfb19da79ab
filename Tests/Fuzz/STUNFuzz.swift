// Fuzz entry of STUN: whatever parses must be readable in full, its ranges must lie inside the message, and
// written again it must parse to the same values. What a lite agent takes for the answer to its request has to
// bear that request's transaction id.
// Seeds: STUN/*.hex

import Base
import Peer
import TestSupport
import Wire

func fuzzSTUN(_ bytes: Span<UInt8>) {
    _ = DatagramKind(bytes)
    let ufrag = STUNMessage.localUfrag(ofRequest: bytes)
    let proved = proves(bytes)
    guard let message = try? STUNMessage(parsing: bytes) else {
        guard proved == nil else { fatalError("what does not parse proves an address") }
        return
    }
    if let proved, proved != message.transactionID { fatalError("a wrong answer proves an address") }
    if let ufrag, let username = message.username(in: bytes), !username.hasPrefix(ufrag) {
        fatalError("the quick look found another ufrag than the parser")
    }
    _ = (message.fingerprint(in: bytes), message.unknownRequired)
    _ = message.isAuthentic(bytes, key: [1], by: Checksum())
    _ = try? message.errorCode(in: bytes)
    _ = try? message.unknownAttributes(in: bytes)

    var writer = STUNWriter(message.kind, transactionID: message.transactionID)
    for attribute in message.attributes where !isSeal(attribute.type) {
        guard attribute.range.upperBound <= bytes.count else { fatalError("a range lies outside") }
        guard attribute.range.count <= 763 else { return }
        writer.append(attribute.type, (try? bytes.bytes(attribute.range)) ?? [])
    }
    let sealed = writer.sealed(key: [1], by: Checksum())
    guard let again = try? STUNMessage(parsing: sealed.span) else {
        // Two attributes more than the limit may have been written.
        guard message.attributes.count >= STUNMessage.attributeLimit - 1 else {
            fatalError("a written message does not parse")
        }
        return
    }
    guard again.priority == message.priority, again.useCandidate == message.useCandidate,
        again.iceControlled == message.iceControlled, again.iceControlling == message.iceControlling,
        again.username(in: sealed.span) == message.username(in: bytes),
        (try? again.xorMappedAddress(in: sealed.span)) == (try? message.xorMappedAddress(in: bytes)),
        again.fingerprint(in: sealed.span) == .right,
        again.isAuthentic(sealed.span, key: [1], by: Checksum())
    else { fatalError("a message does not survive being written") }
}

private let source = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 1)
private let ours = ICECredentials(ufrag: "rostrum1", password: Secret("0123456789abcdefghijklmn"))
private let theirs = ICECredentials(ufrag: "evtj", password: Secret("VOkJxbRl1RmTxUk/WvJxBt"))

/// Hands a datagram to an agent that asks whether somebody is at its source.
///
/// - Returns: the transaction id that the agent asked with, if it took the datagram for an answer.
private func proves(_ bytes: Span<UInt8>) -> STUNTransactionID? {
    var random = SeededGenerator(seed: 1)
    var agent = ICELiteAgent(credentials: ours, remote: theirs, at: .zero)
    _ = agent.noteHandshake(through: nil, at: .zero)
    var check = STUNWriter(.bindingRequest, transactionID: STUNTransactionID(high: 1, low: 2))
    check.appendUsername("rostrum1:evtj")
    check.append(.priority, 1 as UInt32)
    check.append(.useCandidate)
    let sealed = check.sealed(key: ours.key, by: Checksum())
    let effects = try? agent.receive(
        sealed.span, from: source, at: .zero, authenticator: Checksum(), using: &random)
    guard case .send(let request, _)? = effects?.last,
        let asked = try? STUNMessage(parsing: request.span), asked.kind == .bindingRequest
    else { fatalError("a check from a new address causes no request") }
    _ = try? agent.receive(bytes, from: source, at: .zero, authenticator: Checksum(), using: &random)
    return agent.isProven(source) ? asked.transactionID : nil
}

/// Whether `sealed(key:by:)` writes this attribute itself.
private func isSeal(_ type: STUNAttribute) -> Bool {
    type == .messageIntegrity || type == .messageIntegritySHA256 || type == .fingerprint
}

/// Stands in for HMAC-SHA1: as quick as can be, and different for different messages.
private struct Checksum: MessageAuthenticator {
    func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 16)
        code.append(bigEndian: CRC32.checksum(message))
        return code
    }
}
