/// A STUN message's header, and where its attributes lie.
///
/// A value holding byte ranges, not a view; what needs the bytes again takes them as a parameter.
/// - Source: RFC 8489 §5 (header), §14 (attributes).
package struct STUNMessage: Equatable, Sendable {
    /// Type, and where the value lies.
    package struct Attribute: Equatable, Sendable {
        /// May be one that we do not know.
        package let type: STUNAttribute
        /// The value without its padding.
        package let range: Range<Int>
    }

    /// Bytes of type, length, cookie and transaction.
    package static let headerLength = 20
    /// Tells STUN apart from what older clients sent (RFC 8489 §5).
    package static let magicCookie: UInt32 = 0x2112_A442
    /// More attributes than any client sends (ICE needs at most ten), so that parsing stays cheap.
    package static let attributeLimit = 32
    /// The longest USERNAME, in bytes (RFC 8489 §14.3).
    package static let usernameLimit = 508

    /// May be one that nobody here answers.
    package let kind: STUNKind
    /// An answer has that of its request.
    package let transactionID: STUNTransactionID
    /// In the order of the message, without repetitions, and without what follows MESSAGE-INTEGRITY and
    /// is therefore not protected.
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
    /// Does not check FINGERPRINT and MESSAGE-INTEGRITY: see `fingerprint(in:)` and `isAuthentic`.
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

    /// The value of the first attribute of this type.
    package subscript(_ type: STUNAttribute) -> Range<Int>? {
        attributes.first { $0.type == type }?.range
    }

    /// Comprehension-required attributes nobody here understands; a request with any is answered with 420.
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
    /// The two highest bits, which are 0 in STUN, are not.
    package static var stunType: Self { .init("stun.type") }
    /// Not the magic cookie.
    package static var stunCookie: Self { .init("stun.cookie") }
    /// A length that is no multiple of four, or not that of the datagram.
    package static var stunLength: Self { .init("stun.length") }
    /// An attribute that its type cannot have at this length.
    package static var stunAttributeLength: Self { .init("stun.attributeLength") }
    /// More than `attributeLimit`.
    package static var stunAttributeCount: Self { .init("stun.attributeCount") }
    /// FINGERPRINT is not the last attribute.
    package static var stunFingerprint: Self { .init("stun.fingerprint") }
    /// An address of no family that we know, or cut short.
    package static var stunAddress: Self { .init("stun.address") }
    /// A class or number outside of 300 to 699.
    package static var stunErrorCode: Self { .init("stun.errorCode") }
    /// No UTF-8.
    package static var stunText: Self { .init("stun.text") }
}
