// Fuzz entry of STUN: whatever parses must be readable in full, its ranges must lie inside the message, and
// written again it must parse to the same values.
// Seeds: STUN/*.hex

import Wire

func fuzzSTUN(_ bytes: Span<UInt8>) {
    _ = DatagramKind(bytes)
    let ufrag = STUNMessage.localUfrag(ofRequest: bytes)
    guard let message = try? STUNMessage(parsing: bytes) else { return }
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
