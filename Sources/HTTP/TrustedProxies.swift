import Base

/// The proxies that are trusted to name the client behind a request.
///
/// - Source: RFC 7239 §8.1: entries from before the first trusted proxy may be forged.
package struct TrustedProxies: Sendable, Equatable {
    /// An address prefix (CIDR).
    package struct Network: Sendable, Equatable, CustomStringConvertible {
        /// The network's first address: all bits after the prefix are 0.
        private let first: IPAddress
        /// Length of the prefix in bits, counted in the 128 bits of the IPv6-mapped form.
        private let length: Int

        /// Parses a network; nil for text that is none.
        /// - Parameter text: `10.0.0.0/8`, `fd00::/8`, or a single address.
        package init?(_ text: some StringProtocol) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let head = parts.first, let ip = IPAddress(String(head)) else { return nil }
            let offset = ip.ipv4 == nil ? 0 : 96
            var length = 128
            if parts.count == 2 {
                // Checked first, because `UInt8` also accepts a sign.
                guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt8(parts[1]),
                    Int(number) + offset <= 128
                else { return nil }
                length = Int(number) + offset
            }
            self.length = length
            first = Self.masked(ip, length)
        }

        func contains(_ ip: IPAddress) -> Bool { Self.masked(ip, length) == first }

        private static func masked(_ ip: IPAddress, _ length: Int) -> IPAddress {
            let high = length >= 64 ? UInt64.max : ~(UInt64.max >> UInt64(length))
            let low = length <= 64 ? 0 : length >= 128 ? UInt64.max : ~(UInt64.max >> UInt64(length - 64))
            return IPAddress(high: ip.high & high, low: ip.low & low)
        }

        /// The prefix and its length, as in `10.0.0.0/8`.
        package var description: String {
            "\(first)/\(first.ipv4 == nil ? length : length - 96)"
        }
    }

    /// Empty if no proxy is trusted.
    package let networks: [Network]

    package init(_ networks: [Network] = []) {
        self.networks = networks
    }

    func contains(_ ip: IPAddress) -> Bool { networks.contains { $0.contains(ip) } }

    /// The client: the last address in the chain that does not belong to a trusted proxy.
    ///
    /// Read from the end, because only the entries that trusted proxies appended are reliable. Cut as bytes, because
    /// the comma that a proxy appends may form one `Character` with what the client sent before it (UAX #29, GB9b).
    /// - Parameters:
    ///   - connection: address of the connection's peer.
    ///   - field: `X-Forwarded-For`, to which each proxy appends the address it received the request from.
    package func client(of connection: IPAddress, forwardedFor field: String?) -> IPAddress {
        var client = connection
        guard let field else { return client }
        let entries = field.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        for entry in entries.reversed() {
            guard contains(client) else { return client }
            // An entry that is no address ends the chain: the proxy that wrote it is the last known hop.
            guard let ip = Self.address(Substring(entry).trimmed) else { return client }
            client = ip
        }
        return client
    }

    /// Parses an entry: an address, with brackets or a port if the proxy adds them.
    private static func address(_ text: String) -> IPAddress? {
        if let ip = IPAddress(text) { return ip }
        var rest = text.utf8[...]
        let isBracketed = rest.first == UInt8(ascii: "[")
        if isBracketed { rest = rest.dropFirst() }
        guard let end = rest.firstIndex(of: UInt8(ascii: isBracketed ? "]" : ":")) else { return nil }
        let host = rest[..<end]
        rest = rest[end...]
        if isBracketed { rest = rest.dropFirst() }
        if rest.first == UInt8(ascii: ":") {
            let port = rest.dropFirst()
            // Checked first, because `UInt16` also accepts a sign.
            guard port.allSatisfy({ (0x30...0x39).contains($0) }), UInt16(Substring(port)) != nil else {
                return nil
            }
        } else if !rest.isEmpty {
            return nil
        }
        return IPAddress(Substring(host))
    }
}

extension HTTPHeaders {
    /// Header fields that proxies add to forwarded requests.
    static let forwarding = [
        "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto",
        "x-forwarded-server", "x-real-ip",
    ]

    /// Whether a field shows that a proxy forwarded the request.
    var isForwarded: Bool { fields.contains { Self.forwarding.contains($0.name) } }
}
