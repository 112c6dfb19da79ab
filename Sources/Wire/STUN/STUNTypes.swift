/// A STUN message type: method and class in one number.
///
/// - Source: RFC 8489 §5.
package struct STUNKind: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    package static let bindingRequest = STUNKind(rawValue: 0x0001)
    package static let bindingIndication = STUNKind(rawValue: 0x0011)
    package static let bindingSuccess = STUNKind(rawValue: 0x0101)
    package static let bindingError = STUNKind(rawValue: 0x0111)
}

/// The 96 bits that tie an answer to its request.
package struct STUNTransactionID: Hashable, Sendable {
    /// The first four and the last eight bytes, in network order.
    package let high: UInt32
    package let low: UInt64

    package init(high: UInt32, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// - Parameter random: cryptographic outside of tests, or strangers could forge answers (RFC 8489 §5).
    package init(using random: inout some RandomNumberGenerator) {
        high = random.next()
        low = random.next()
    }
}

/// A STUN attribute type.
///
/// - Source: RFC 8489 §14, §18.3; RFC 8445 §16.1 (the ICE attributes).
package struct STUNAttribute: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    package static let mappedAddress = STUNAttribute(rawValue: 0x0001)
    package static let username = STUNAttribute(rawValue: 0x0006)
    package static let messageIntegrity = STUNAttribute(rawValue: 0x0008)
    package static let errorCode = STUNAttribute(rawValue: 0x0009)
    package static let unknownAttributes = STUNAttribute(rawValue: 0x000A)
    package static let realm = STUNAttribute(rawValue: 0x0014)
    package static let nonce = STUNAttribute(rawValue: 0x0015)
    package static let messageIntegritySHA256 = STUNAttribute(rawValue: 0x001C)
    package static let xorMappedAddress = STUNAttribute(rawValue: 0x0020)
    package static let priority = STUNAttribute(rawValue: 0x0024)
    package static let useCandidate = STUNAttribute(rawValue: 0x0025)
    package static let software = STUNAttribute(rawValue: 0x8022)
    package static let fingerprint = STUNAttribute(rawValue: 0x8028)
    package static let iceControlled = STUNAttribute(rawValue: 0x8029)
    package static let iceControlling = STUNAttribute(rawValue: 0x802A)

    /// Whether a receiver that does not know the attribute must refuse the message (RFC 8489 §14).
    package var isComprehensionRequired: Bool { rawValue < 0x8000 }

    /// Whether this code knows what the attribute means.
    package var isKnown: Bool {
        switch self {
        case .mappedAddress, .username, .messageIntegrity, .errorCode, .unknownAttributes, .realm, .nonce,
            .messageIntegritySHA256, .xorMappedAddress, .priority, .useCandidate, .software, .fingerprint,
            .iceControlled, .iceControlling:
            true
        default: false
        }
    }

    /// The only length its value may have, in bytes; nil where it varies.
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

/// An error that ICE answers with.
///
/// - Source: RFC 8489 §14.8; RFC 8445 §7.3.1.1 (487).
package struct STUNErrorCode: Hashable, Sendable {
    /// 300 to 699.
    package let number: UInt16
    package let reason: String

    /// - Parameter reason: for people; at most 127 characters.
    package init(_ number: UInt16, _ reason: String = "") {
        self.number = number
        self.reason = reason
    }

    package static let badRequest = STUNErrorCode(400, "Bad Request")
    package static let unauthenticated = STUNErrorCode(401, "Unauthenticated")
    package static let unknownAttribute = STUNErrorCode(420, "Unknown Attribute")
    package static let roleConflict = STUNErrorCode(487, "Role Conflict")

    package static func == (left: Self, right: Self) -> Bool { left.number == right.number }

    package func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
