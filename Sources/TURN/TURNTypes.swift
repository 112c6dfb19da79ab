import Base
import Wire

extension STUNKind {
    // RFC 8656 §17. Answers have the class bits of STUN: 0x0100 for a success, 0x0110 for an error.
    static let allocateRequest = STUNKind(rawValue: 0x0003)
    static let refreshRequest = STUNKind(rawValue: 0x0004)
    static let createPermissionRequest = STUNKind(rawValue: 0x0008)
    static let channelBindRequest = STUNKind(rawValue: 0x0009)
    static let sendIndication = STUNKind(rawValue: 0x0016)
    static let dataIndication = STUNKind(rawValue: 0x0017)

    /// The type of the success response to this request.
    var success: STUNKind { STUNKind(rawValue: rawValue | 0x0100) }
    /// The type of the error response to this request.
    var failure: STUNKind { STUNKind(rawValue: rawValue | 0x0110) }
    /// Whether it is of the request class, and so needs a response.
    var isRequest: Bool { rawValue & 0x0110 == 0 }
}

extension STUNAttribute {
    // RFC 8656 §18.
    static let channelNumber = STUNAttribute(rawValue: 0x000C)
    static let lifetime = STUNAttribute(rawValue: 0x000D)
    static let xorPeerAddress = STUNAttribute(rawValue: 0x0012)
    static let data = STUNAttribute(rawValue: 0x0013)
    static let xorRelayedAddress = STUNAttribute(rawValue: 0x0016)
    static let requestedAddressFamily = STUNAttribute(rawValue: 0x0017)
    static let evenPort = STUNAttribute(rawValue: 0x0018)
    static let requestedTransport = STUNAttribute(rawValue: 0x0019)
    static let reservationToken = STUNAttribute(rawValue: 0x0022)

    /// Whether the relay understands the attribute when a client sends it; DONT-FRAGMENT it does not.
    var isKnownToRelay: Bool {
        switch self {
        case .channelNumber, .lifetime, .xorPeerAddress, .data, .requestedAddressFamily, .evenPort,
            .requestedTransport, .reservationToken:
            true
        default: isKnown
        }
    }
}

extension STUNErrorCode {
    // RFC 8656 §19, RFC 8489 §14.8.
    static let forbidden = STUNErrorCode(403, "Forbidden")
    static let allocationMismatch = STUNErrorCode(437, "Allocation Mismatch")
    static let staleNonce = STUNErrorCode(438, "Stale Nonce")
    static let familyNotSupported = STUNErrorCode(440, "Address Family not Supported")
    static let wrongCredentials = STUNErrorCode(441, "Wrong Credentials")
    static let transportNotSupported = STUNErrorCode(442, "Unsupported Transport Protocol")
    static let peerFamilyMismatch = STUNErrorCode(443, "Peer Address Family Mismatch")
    static let quotaReached = STUNErrorCode(486, "Allocation Quota Reached")
    static let insufficientCapacity = STUNErrorCode(508, "Insufficient Capacity")
}

/// The encoding of an address in XOR-PEER-ADDRESS and similar attributes.
///
/// - Source: RFC 8489 §14.2, RFC 8656 §18.3.
enum XORAddress {
    /// - Throws: if the address family is unknown, or the length does not match it.
    static func read(
        _ range: Range<Int>, of bytes: Span<UInt8>, _ id: STUNTransactionID
    ) throws(WireError) -> TransportAddress {
        let start = range.lowerBound
        let family = try bytes.uint8(at: start + 1)
        let port = try bytes.uint16(at: start + 2) ^ UInt16(STUNMessage.magicCookie >> 16)
        switch (family, range.count) {
        case (0x01, 8):
            let bits = try bytes.uint32(at: start + 4) ^ STUNMessage.magicCookie
            return TransportAddress(ip: IPAddress(ipv4: bits), port: port)
        case (0x02, 20):
            let ip = IPAddress(
                high: try bytes.uint64(at: start + 4) ^ mask(id),
                low: try bytes.uint64(at: start + 12) ^ id.low)
            return TransportAddress(ip: ip, port: port)
        default: throw .invalid(.stunAddress)
        }
    }

    static func encode(_ address: TransportAddress, _ id: STUNTransactionID) -> [UInt8] {
        var value: [UInt8] = [0, address.ip.ipv4 == nil ? 0x02 : 0x01]
        value.append(bigEndian: address.port ^ UInt16(STUNMessage.magicCookie >> 16))
        if let ipv4 = address.ip.ipv4 {
            value.append(bigEndian: ipv4 ^ STUNMessage.magicCookie)
        } else {
            value.append(bigEndian: address.ip.high ^ mask(id))
            value.append(bigEndian: address.ip.low ^ id.low)
        }
        return value
    }

    /// The first eight bytes of the mask for IPv6: the cookie and the beginning of the transaction ID.
    private static func mask(_ id: STUNTransactionID) -> UInt64 {
        UInt64(STUNMessage.magicCookie) << 32 | UInt64(id.high)
    }
}

extension STUNMessage {
    /// All peers that a request names; `attributes` contains only the first.
    ///
    /// - Source: RFC 8656 §9.1: CreatePermission may name several.
    func peers(in bytes: Span<UInt8>) throws(WireError) -> [TransportAddress] {
        var found: [TransportAddress] = []
        var offset = Self.headerLength
        while offset < bytes.count, found.count < Self.attributeLimit {
            let type = STUNAttribute(rawValue: try bytes.uint16(at: offset))
            let range = (offset + 4)..<(offset + 4 + Int(try bytes.uint16(at: offset + 2)))
            guard type != .messageIntegrity else { break }
            if type == .xorPeerAddress { found.append(try XORAddress.read(range, of: bytes, transactionID)) }
            offset = (range.upperBound + 3) & ~3
        }
        return found
    }

    /// The first 32 bits of an attribute's value; nil without the attribute.
    func uint32(_ type: STUNAttribute, in bytes: Span<UInt8>) throws(WireError) -> UInt32? {
        guard let range = self[type] else { return nil }
        guard range.count >= 4 else { throw .invalid(.stunAttributeLength) }
        return try bytes.uint32(at: range.lowerBound)
    }

    /// An attribute's value as text; nil without the attribute, or if it is not valid UTF-8.
    func text(_ type: STUNAttribute, in bytes: Span<UInt8>) -> String? {
        guard let range = self[type], let value = try? bytes.bytes(range) else { return nil }
        return String(validating: value, as: UTF8.self)
    }
}
