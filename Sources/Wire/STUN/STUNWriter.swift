import Base

/// Writes one STUN message, attribute by attribute.
///
/// - Source: RFC 8489 §5, §14.
package struct STUNWriter: Sendable {
    /// XORed with the CRC in FINGERPRINT, so that it differs from the CRCs of other protocols.
    static let fingerprintMask: UInt32 = 0x5354_554E

    private var bytes: [UInt8] = []
    private let transactionID: STUNTransactionID

    /// Begins with a header; `sealed` sets its length.
    package init(_ kind: STUNKind, transactionID: STUNTransactionID) {
        self.transactionID = transactionID
        bytes.reserveCapacity(128)
        bytes.append(bigEndian: kind.rawValue)
        bytes.append(bigEndian: UInt16(0))
        bytes.append(bigEndian: STUNMessage.magicCookie)
        bytes.append(bigEndian: transactionID.high)
        bytes.append(bigEndian: transactionID.low)
    }

    /// Appends an attribute with any value, padded to 32 bits with zeros.
    ///
    /// - Parameter value: at most 763 bytes, the longest attribute of RFC 8489; more is cut off.
    package mutating func append(_ type: STUNAttribute, _ value: some Collection<UInt8> = []) {
        assert(value.count <= 763, "STUN attribute is too long")
        let value = value.prefix(763)
        bytes.append(bigEndian: type.rawValue)
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: value.count))
        bytes.append(contentsOf: value)
        bytes.append(contentsOf: repeatElement(0, count: -value.count & 3))
    }

    /// Appends a big-endian number.
    package mutating func append(_ type: STUNAttribute, _ value: UInt32) {
        var encoded: [UInt8] = []
        encoded.append(bigEndian: value)
        append(type, encoded)
    }

    /// Appends a big-endian number.
    package mutating func append(_ type: STUNAttribute, _ value: UInt64) {
        var encoded: [UInt8] = []
        encoded.append(bigEndian: value)
        append(type, encoded)
    }

    /// Appends USERNAME.
    /// - Parameter username: in ICE the receiver's ufrag, a colon, and the sender's ufrag.
    package mutating func appendUsername(_ username: String) {
        append(.username, Array(username.utf8))
    }

    /// Appends XOR-MAPPED-ADDRESS.
    /// - Source: RFC 8489 §14.2.
    package mutating func appendXORMappedAddress(_ address: TransportAddress) {
        var value: [UInt8] = []
        let port = address.port ^ UInt16(STUNMessage.magicCookie >> 16)
        if let ipv4 = address.ip.ipv4 {
            value.append(bigEndian: UInt16(0x0001))
            value.append(bigEndian: port)
            value.append(bigEndian: ipv4 ^ STUNMessage.magicCookie)
        } else {
            let mask = transactionID.addressMask
            value.append(bigEndian: UInt16(0x0002))
            value.append(bigEndian: port)
            value.append(bigEndian: address.ip.high ^ mask.high)
            value.append(bigEndian: address.ip.low ^ mask.low)
        }
        append(.xorMappedAddress, value)
    }

    /// Appends ERROR-CODE.
    /// - Source: RFC 8489 §14.8.
    package mutating func appendErrorCode(_ code: STUNErrorCode) {
        let hundreds = UInt8(truncatingIfNeeded: code.number / 100)
        let rest = UInt8(truncatingIfNeeded: code.number % 100)
        append(.errorCode, [0, 0, hundreds, rest] + Array(code.reason.utf8))
    }

    /// Appends UNKNOWN-ATTRIBUTES.
    /// - Source: RFC 8489 §14.13.
    package mutating func appendUnknownAttributes(_ types: [STUNAttribute]) {
        var value: [UInt8] = []
        for type in types { value.append(bigEndian: type.rawValue) }
        append(.unknownAttributes, value)
    }

    /// Completes the message with MESSAGE-INTEGRITY and FINGERPRINT.
    ///
    /// - Parameter key: the password's UTF-8 bytes (short-term credentials).
    package func sealed(key: [UInt8], by authenticator: some MessageAuthenticator) -> [UInt8] {
        var writer = self
        writer.setLength(adding: 24)
        let code = authenticator.hmacSHA1(key: key.span, writer.bytes.span)
        writer.append(.messageIntegrity, code)
        return writer.sealed()
    }

    /// Completes the message with FINGERPRINT only: for responses to senders that did not prove to know the
    /// password.
    package func sealed() -> [UInt8] {
        var writer = self
        writer.setLength(adding: 8)
        writer.append(.fingerprint, CRC32.checksum(writer.bytes.span) ^ Self.fingerprintMask)
        return writer.bytes
    }

    /// Sets the header's length to the value after `count` more bytes.
    private mutating func setLength(adding count: Int) {
        let length = UInt16(truncatingIfNeeded: bytes.count - STUNMessage.headerLength + count)
        bytes[2] = UInt8(truncatingIfNeeded: length >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: length)
    }
}
