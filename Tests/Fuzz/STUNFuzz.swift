// Fuzz entry of STUN: whatever parses must be readable in full, its ranges must lie inside the message, and
// written again it must parse to the same values. Built together with Base and Wire, as one module.

@_cdecl("LLVMFuzzerTestOneInput")
package func fuzzSTUN(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    _ = DatagramKind(bytes.span)
    let ufrag = STUNMessage.localUfrag(ofRequest: bytes.span)
    guard let message = try? STUNMessage(parsing: bytes.span) else { return 0 }
    if let ufrag, let username = message.username(in: bytes.span), !username.hasPrefix(ufrag) {
        fatalError("the quick look found another ufrag than the parser")
    }
    _ = (message.fingerprint(in: bytes.span), message.unknownRequired)
    _ = message.isAuthentic(bytes.span, key: [1], by: Checksum())
    _ = try? message.errorCode(in: bytes.span)
    _ = try? message.unknownAttributes(in: bytes.span)

    var writer = STUNWriter(message.kind, transactionID: message.transactionID)
    for attribute in message.attributes where !isSeal(attribute.type) {
        guard attribute.range.upperBound <= bytes.count else { fatalError("a range lies outside") }
        guard attribute.range.count <= 763 else { return 0 }
        writer.append(attribute.type, bytes[attribute.range])
    }
    let sealed = writer.sealed(key: [1], by: Checksum())
    guard let again = try? STUNMessage(parsing: sealed.span) else {
        // Two attributes more than the limit may have been written.
        guard message.attributes.count >= STUNMessage.attributeLimit - 1 else {
            fatalError("a written message does not parse")
        }
        return 0
    }
    guard again.priority == message.priority, again.useCandidate == message.useCandidate,
        again.iceControlled == message.iceControlled, again.iceControlling == message.iceControlling,
        again.username(in: sealed.span) == message.username(in: bytes.span),
        (try? again.xorMappedAddress(in: sealed.span)) == (try? message.xorMappedAddress(in: bytes.span)),
        again.fingerprint(in: sealed.span) == .right,
        again.isAuthentic(sealed.span, key: [1], by: Checksum())
    else { fatalError("a message does not survive being written") }
    return 0
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
