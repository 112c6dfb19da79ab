extension IPAddress: CustomStringConvertible {
    /// Parses `192.0.2.1` or `2001:db8::1`, without zone and without brackets.
    ///
    /// Refuses leading zeros in IPv4, which some parsers read as octal (RFC 6943 §3.1.1).
    package init?(_ text: some StringProtocol) {
        if text.utf8.contains(UInt8(ascii: ":")) {
            self.init(ipv6: text)
        } else {
            guard let bits = Self.ipv4Bits(text) else { return nil }
            self.init(ipv4: bits)
        }
    }

    private static func ipv4Bits(_ text: some StringProtocol) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bits: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                part.utf8.count == 1 || part.first != "0", let byte = UInt8(part)
            else { return nil }
            bits = bits << 8 | UInt32(byte)
        }
        return bits
    }

    private init?(ipv6 text: some StringProtocol) {
        guard text.utf8.count <= 45 else { return nil }
        var groups: [UInt16] = []
        var gap: Int?
        var parts = text.split(separator: ":", omittingEmptySubsequences: false)[...]
        // A leading or trailing "::" produces one empty part too many.
        if parts.first?.isEmpty == true {
            guard parts.dropFirst().first?.isEmpty == true else { return nil }
            parts = parts.dropFirst()
        }
        if parts.last?.isEmpty == true {
            parts = parts.dropLast()
            guard parts.last?.isEmpty == true else { return nil }
        }
        for (index, part) in zip(parts.indices, parts) {
            if part.isEmpty {
                guard gap == nil else { return nil }
                gap = groups.count
            } else if index == parts.indices.last, part.contains(".") {
                guard let bits = Self.ipv4Bits(part) else { return nil }
                groups += [UInt16(truncatingIfNeeded: bits >> 16), UInt16(truncatingIfNeeded: bits)]
            } else {
                // Checked first, because `UInt16` also accepts a sign.
                guard part.utf8.count <= 4, part.allSatisfy(\.isHexDigit), let group = UInt16(part, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        guard gap == nil ? groups.count == 8 : groups.count < 8 else { return nil }
        if let gap { groups.insert(contentsOf: repeatElement(0, count: 8 - groups.count), at: gap) }
        self.init(
            high: groups.prefix(4).reduce(0) { $0 << 16 | UInt64($1) },
            low: groups.suffix(4).reduce(0) { $0 << 16 | UInt64($1) })
    }

    /// IPv6 as RFC 5952 prescribes: lower case, with the longest run of zero groups as `::`.
    package var description: String {
        if let ipv4 { return (0..<4).map { String(ipv4 >> (24 - 8 * $0) & 0xFF) }.joined(separator: ".") }
        let groups = (0..<8).map {
            UInt16(truncatingIfNeeded: ($0 < 4 ? high : low) >> (48 - 16 * UInt64($0 % 4)))
        }
        guard let zeros = Self.longestZeroRun(in: groups) else { return Self.hexadecimal(groups[...]) }
        return Self.hexadecimal(groups[..<zeros.lowerBound]) + "::"
            + Self.hexadecimal(groups[zeros.upperBound...])
    }

    private static func hexadecimal(_ groups: ArraySlice<UInt16>) -> String {
        groups.map { String($0, radix: 16) }.joined(separator: ":")
    }

    /// The run of at least two zero groups that `::` stands for (RFC 5952 §4.2).
    private static func longestZeroRun(in groups: [UInt16]) -> Range<Int>? {
        var best: Range<Int>?
        var start = 0
        while start < groups.count {
            var end = start
            while end < groups.count, groups[end] == 0 { end += 1 }
            if end - start >= 2, end - start > (best?.count ?? 0) { best = start..<end }
            start = end + 1
        }
        return best
    }
}

extension TransportAddress: CustomStringConvertible {
    /// Parses `192.0.2.1:7000` or `[2001:db8::1]:7000`.
    package init?(_ text: some StringProtocol) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        // Checked first, because `UInt16` also accepts a sign.
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits) else {
            return nil
        }
        var host = text[..<colon]
        if host.first == "[" {
            guard host.last == "]" else { return nil }
            host = host.dropFirst().dropLast()
            guard host.contains(":") else { return nil }
        } else if host.contains(":") {
            return nil
        }
        guard let ip = IPAddress(host) else { return nil }
        self.init(ip: ip, port: port)
    }

    /// `192.0.2.1:7000` or `[2001:db8::1]:7000`, without the transport.
    package var description: String {
        ip.ipv4 == nil ? "[\(ip)]:\(port)" : "\(ip):\(port)"
    }
}
