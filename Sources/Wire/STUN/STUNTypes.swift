/// A STUN message type: method and class in one number.
///
/// - Source: RFC 8489 §5.
package struct STUNKind: RawRepresentable, Hashable, Sendable {
    /// The 14 bits of the header, with the class bits in their places.
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// A connectivity check, or a request for the sender's own public address.
    package static let bindingRequest = STUNKind(rawValue: 0x0001)
    /// Keeps a NAT binding alive; there is no response.
    package static let bindingIndication = STUNKind(rawValue: 0x0011)
    /// The response that makes a pair valid.
    package static let bindingSuccess = STUNKind(rawValue: 0x0101)
    /// The response with an ERROR-CODE.
    package static let bindingError = STUNKind(rawValue: 0x0111)
}

/// The 96 bits that relate a response to its request.
package struct STUNTransactionID: Hashable, Sendable {
    /// The first four of the twelve bytes, in network order.
    package let high: UInt32
    /// The last eight of the twelve bytes, in network order.
    package let low: UInt64

    package init(high: UInt32, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// - Parameter random: cryptographically secure outside of tests, or responses could be forged (RFC 8489 §5).
    package init(using random: inout some RandomNumberGenerator) {
        high = random.next()
        low = random.next()
    }
}

/// A STUN attribute type.
///
/// - Source: RFC 8489 §14, §18.3; RFC 8445 §16.1 (the ICE attributes).
package struct STUNAttribute: RawRepresentable, Hashable, Sendable {
    /// As in the registry; receivers may ignore unknown types of 0x8000 and above.
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// RFC 8489 §14.1; used by older clients only.
    package static let mappedAddress = STUNAttribute(rawValue: 0x0001)
    /// RFC 8489 §14.3; in ICE the two ufrags as `RECEIVER:SENDER`.
    package static let username = STUNAttribute(rawValue: 0x0006)
    /// RFC 8489 §14.5.
    package static let messageIntegrity = STUNAttribute(rawValue: 0x0008)
    /// RFC 8489 §14.8.
    package static let errorCode = STUNAttribute(rawValue: 0x0009)
    /// RFC 8489 §14.13.
    package static let unknownAttributes = STUNAttribute(rawValue: 0x000A)
    /// RFC 8489 §14.9; not used by ICE.
    package static let realm = STUNAttribute(rawValue: 0x0014)
    /// RFC 8489 §14.10; not used by ICE.
    package static let nonce = STUNAttribute(rawValue: 0x0015)
    /// RFC 8489 §14.6; not used by ICE.
    package static let messageIntegritySHA256 = STUNAttribute(rawValue: 0x001C)
    /// RFC 8489 §14.2.
    package static let xorMappedAddress = STUNAttribute(rawValue: 0x0020)
    /// RFC 8445 §7.1.1.
    package static let priority = STUNAttribute(rawValue: 0x0024)
    /// RFC 8445 §7.1.2.
    package static let useCandidate = STUNAttribute(rawValue: 0x0025)
    /// RFC 8489 §14.14.
    package static let software = STUNAttribute(rawValue: 0x8022)
    /// RFC 8489 §14.7.
    package static let fingerprint = STUNAttribute(rawValue: 0x8028)
    /// RFC 8445 §7.1.3.
    package static let iceControlled = STUNAttribute(rawValue: 0x8029)
    /// RFC 8445 §7.1.3.
    package static let iceControlling = STUNAttribute(rawValue: 0x802A)

    /// Whether a receiver that does not know the attribute must refuse the message (RFC 8489 §14).
    package var isComprehensionRequired: Bool { rawValue < 0x8000 }

    /// Whether this code understands the attribute.
    package var isKnown: Bool {
        switch self {
        case .mappedAddress, .username, .messageIntegrity, .errorCode, .unknownAttributes, .realm, .nonce,
            .messageIntegritySHA256, .xorMappedAddress, .priority, .useCandidate, .software, .fingerprint,
            .iceControlled, .iceControlling:
            true
        default: false
        }
    }

    /// The only valid length of its value in bytes; nil if the length varies.
    var fixedLength: Int? {
        switch self {
        case .useCandidate: 0
        case .priority, .fingerprint: 4
        case .iceControlled, .iceControlling: 8
        case .messageIntegrity: 20
        default: nil
        }
    }
}

/// An error in a response to a check.
///
/// - Source: RFC 8489 §14.8; RFC 8445 §7.3.1.1 (487).
package struct STUNErrorCode: Hashable, Sendable {
    /// 300 to 699.
    package let number: UInt16
    /// For readers of logs; ignored in comparisons.
    package let reason: String

    /// - Parameter reason: for readers of logs; at most 127 characters.
    package init(_ number: UInt16, _ reason: String = "") {
        self.number = number
        self.reason = reason
    }

    /// The request is malformed or incomplete.
    package static let badRequest = STUNErrorCode(400, "Bad Request")
    /// MESSAGE-INTEGRITY is missing or was computed with another key.
    package static let unauthenticated = STUNErrorCode(401, "Unauthenticated")
    /// The request has unknown attributes that require comprehension; the response lists them.
    package static let unknownAttribute = STUNErrorCode(420, "Unknown Attribute")
    /// Both sides claim the controlling role (RFC 8445 §7.3.1.1).
    package static let roleConflict = STUNErrorCode(487, "Role Conflict")

    package static func == (left: Self, right: Self) -> Bool { left.number == right.number }

    package func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
