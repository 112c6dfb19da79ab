/// The header of a STUN message, and the places of its attributes.
///
/// Contains byte ranges instead of a view; methods that need the bytes take them as a parameter.
/// - Source: RFC 8489 §5 (header), §14 (attributes).
package struct STUNMessage: Equatable, Sendable {
    /// One attribute: its type, and the place of its value.
    package struct Attribute: Equatable, Sendable {
        /// May be unknown.
        package let type: STUNAttribute
        /// The value without its padding.
        package let range: Range<Int>
    }

    /// Bytes of type, length, cookie and transaction.
    package static let headerLength = 20
    /// Distinguishes STUN from its predecessor, RFC 3489 (RFC 8489 §5).
    package static let magicCookie: UInt32 = 0x2112_A442
    /// More attributes than any client sends (ICE needs at most ten), so that parsing remains cheap.
    package static let attributeLimit = 32
    /// The longest USERNAME, in bytes (RFC 8489 §14.3).
    package static let usernameLimit = 508

    /// May be a kind that this server does not handle.
    package let kind: STUNKind
    /// A response has that of its request.
    package let transactionID: STUNTransactionID
    /// In the order of the message, without repetitions, and without those after MESSAGE-INTEGRITY, which are not
    /// protected.
    package let attributes: [Attribute]
    /// The sender's priority for this pair (RFC 8445 §7.1.1).
    package let priority: UInt32?
    /// Whether the controlling side nominates this pair (RFC 8445 §7.1.2).
    package let useCandidate: Bool
    /// The tie-breaker of a sender in the controlled role.
    package let iceControlled: UInt64?
    /// The tie-breaker of a sender in the controlling role.
    package let iceControlling: UInt64?

    /// Parses one whole datagram.
    ///
    /// Does not verify FINGERPRINT and MESSAGE-INTEGRITY: see `fingerprint(in:)` and `isAuthentic`.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        try bytes.require(Self.headerLength)
        let type = try bytes.uint16(at: 0)
        guard type >> 14 == 0 else { throw .invalid(.stunType) }
        guard try bytes.uint32(at: 4) == Self.magicCookie else { throw .invalid(.stunCookie) }
        let length = Int(try bytes.uint16(at: 2))
        guard length % 4 == 0 else { throw .invalid(.stunLength) }
        try bytes.require(Self.headerLength + length)
        guard bytes.count == Self.headerLength + length else { throw .invalid(.stunLength) }

        kind = STUNKind(rawValue: type)
        transactionID = STUNTransactionID(high: try bytes.uint32(at: 8), low: try bytes.uint64(at: 12))
        let attributes = try Self.attributes(of: bytes)
        self.attributes = attributes
        func range(_ type: STUNAttribute) -> Range<Int>? {
            attributes.first { $0.type == type }?.range
        }
        useCandidate = range(.useCandidate) != nil
        priority = if let range = range(.priority) { try bytes.uint32(at: range.lowerBound) } else { nil }
        iceControlled =
            if let range = range(.iceControlled) { try bytes.uint64(at: range.lowerBound) } else { nil }
        iceControlling =
            if let range = range(.iceControlling) { try bytes.uint64(at: range.lowerBound) } else { nil }
    }

    /// The place of the value of the first attribute with this type.
    package subscript(_ type: STUNAttribute) -> Range<Int>? {
        attributes.first { $0.type == type }?.range
    }

    /// Comprehension-required attributes that are unknown here; a request with any is answered with 420.
    package var unknownRequired: [STUNAttribute] {
        attributes.lazy.map(\.type).filter { $0.isComprehensionRequired && !$0.isKnown }
    }

    private static func attributes(of bytes: Span<UInt8>) throws(WireError) -> [Attribute] {
        var attributes: [Attribute] = []
        var isProtected = true
        var offset = headerLength
        var count = 0
        while offset < bytes.count {
            let type = STUNAttribute(rawValue: try bytes.uint16(at: offset))
            let length = Int(try bytes.uint16(at: offset + 2))
            let range = (offset + 4)..<(offset + 4 + length)
            try bytes.require(range)
            if let fixed = type.fixedLength, fixed != length { throw .invalid(.stunAttributeLength) }
            if type == .username, length > usernameLimit { throw .invalid(.stunAttributeLength) }
            // Values are padded to 32 bits; the message's length, a multiple of 4, includes the last padding.
            offset = (range.upperBound + 3) & ~3
            count += 1
            guard count <= attributeLimit else { throw .invalid(.stunAttributeCount) }
            if type == .fingerprint, offset != bytes.count { throw .invalid(.stunFingerprint) }

            let counts = isProtected || type == .fingerprint || type == .messageIntegritySHA256
            if counts, !attributes.contains(where: { $0.type == type }) {
                attributes.append(Attribute(type: type, range: range))
            }
            if type == .messageIntegrity { isProtected = false }
        }
        return attributes
    }
}

extension WireError.Field {
    /// The two highest bits are not 0, as they must be in STUN.
    package static var stunType: Self { .init("stun.type") }
    /// The magic cookie is missing.
    package static var stunCookie: Self { .init("stun.cookie") }
    /// A length that is not a multiple of four, or not that of the datagram.
    package static var stunLength: Self { .init("stun.length") }
    /// An attribute with a length that its type cannot have.
    package static var stunAttributeLength: Self { .init("stun.attributeLength") }
    /// More attributes than `attributeLimit`.
    package static var stunAttributeCount: Self { .init("stun.attributeCount") }
    /// FINGERPRINT is not the last attribute.
    package static var stunFingerprint: Self { .init("stun.fingerprint") }
    /// An address of an unknown family, or of the wrong length.
    package static var stunAddress: Self { .init("stun.address") }
    /// A class or number outside the range from 300 to 699.
    package static var stunErrorCode: Self { .init("stun.errorCode") }
    /// Not UTF-8.
    package static var stunText: Self { .init("stun.text") }
}
