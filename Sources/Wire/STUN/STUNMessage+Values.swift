import Base

extension STUNMessage {
    /// The USERNAME; nil if there is none or it is not UTF-8.
    package func username(in bytes: Span<UInt8>) -> String? {
        guard let range = self[.username] else { return nil }
        return try? bytes.text(range)
    }

    /// The receiver's ufrag in the USERNAME of an ICE check, without parsing the rest of the message.
    ///
    /// A server uses it to find the session of any STUN datagram it receives, so it allocates nothing for ufrags of
    /// up to 15 characters.
    /// - Returns: nil unless this is a Binding request whose USERNAME consists of an ICE ufrag (4 to 256 ICE
    ///   characters), a colon and something after it.
    /// - Source: RFC 8445 §7.2.2 (USERNAME), RFC 8839 §5.4 (ufrag).
    package static func localUfrag(ofRequest bytes: Span<UInt8>) -> String? {
        do throws(WireError) {
            guard try bytes.uint16(at: 0) == STUNKind.bindingRequest.rawValue,
                try bytes.uint32(at: 4) == magicCookie
            else { return nil }
            var offset = headerLength
            for _ in 0..<attributeLimit {
                let type = STUNAttribute(rawValue: try bytes.uint16(at: offset))
                let value = (offset + 4)..<(offset + 4 + Int(try bytes.uint16(at: offset + 2)))
                try bytes.require(value)
                guard type != .username else { return try bytes.ufrag(startOf: value) }
                offset = (value.upperBound + 3) & ~3
            }
            return nil
        } catch {
            return nil
        }
    }

    /// The address in XOR-MAPPED-ADDRESS; nil if there is none.
    ///
    /// - Source: RFC 8489 §14.2.
    package func xorMappedAddress(in bytes: Span<UInt8>) throws(WireError) -> TransportAddress? {
        guard let range = self[.xorMappedAddress] else { return nil }
        let start = range.lowerBound
        guard range.count >= 8 else { throw .invalid(.stunAddress) }
        let port = try bytes.uint16(at: start + 2) ^ UInt16(Self.magicCookie >> 16)
        switch (try bytes.uint8(at: start + 1), range.count) {
        case (0x01, 8):
            let ip = IPAddress(ipv4: try bytes.uint32(at: start + 4) ^ Self.magicCookie)
            return TransportAddress(ip: ip, port: port)
        case (0x02, 20):
            let mask = transactionID.addressMask
            let ip = IPAddress(
                high: try bytes.uint64(at: start + 4) ^ mask.high,
                low: try bytes.uint64(at: start + 12) ^ mask.low)
            return TransportAddress(ip: ip, port: port)
        default: throw .invalid(.stunAddress)
        }
    }

    /// The ERROR-CODE; nil if there is none.
    ///
    /// - Source: RFC 8489 §14.8.
    package func errorCode(in bytes: Span<UInt8>) throws(WireError) -> STUNErrorCode? {
        guard let range = self[.errorCode] else { return nil }
        guard range.count >= 4 else { throw .invalid(.stunErrorCode) }
        let hundreds = UInt16(try bytes.uint8(at: range.lowerBound + 2) & 0x07)
        let rest = UInt16(try bytes.uint8(at: range.lowerBound + 3))
        guard (3...6).contains(hundreds), rest < 100 else { throw .invalid(.stunErrorCode) }
        let reason = try bytes.text((range.lowerBound + 4)..<range.upperBound)
        return STUNErrorCode(hundreds * 100 + rest, reason)
    }

    /// The types in UNKNOWN-ATTRIBUTES; empty if there is none.
    ///
    /// - Source: RFC 8489 §14.13.
    package func unknownAttributes(in bytes: Span<UInt8>) throws(WireError) -> [STUNAttribute] {
        guard let range = self[.unknownAttributes] else { return [] }
        guard range.count % 2 == 0 else { throw .invalid(.stunAttributeLength) }
        var types: [STUNAttribute] = []
        for offset in stride(from: range.lowerBound, to: range.upperBound, by: 2) {
            types.append(STUNAttribute(rawValue: try bytes.uint16(at: offset)))
        }
        return types
    }
}

extension STUNTransactionID {
    /// The mask that is XORed with an IPv6 address: the magic cookie and the transaction id.
    var addressMask: (high: UInt64, low: UInt64) {
        (UInt64(STUNMessage.magicCookie) << 32 | UInt64(high), low)
    }
}

extension Span where Element == UInt8 {
    /// Returns a copy of `range` as text.
    fileprivate func text(_ range: Range<Int>) throws(WireError) -> String {
        try require(range)
        do {
            return String(copying: try UTF8Span(validating: extracting(range)))
        } catch {
            throw .invalid(.stunText)
        }
    }

    /// The ICE characters before the first colon of `username`; nil if they are no ufrag.
    fileprivate func ufrag(startOf username: Range<Int>) throws(WireError) -> String? {
        for offset in username.prefix(257) {
            switch try uint8(at: offset) {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                continue
            case UInt8(ascii: ":"):
                let ufrag = username.lowerBound..<offset
                guard ufrag.count >= 4, offset + 1 < username.upperBound else { return nil }
                return try text(ufrag)
            default: return nil
            }
        }
        return nil
    }
}
