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
    /// Read from the end, because only the entries that trusted proxies appended are reliable.
    /// - Parameters:
    ///   - connection: address of the connection's peer.
    ///   - field: `X-Forwarded-For`, to which each proxy appends the address it received the request from.
    func client(of connection: IPAddress, forwardedFor field: String?) -> IPAddress {
        var client = connection
        guard let field else { return client }
        for entry in field.split(separator: ",", omittingEmptySubsequences: false).reversed() {
            guard contains(client) else { return client }
            // An entry that is no address ends the chain: the proxy that wrote it is the last known hop.
            guard let ip = Self.address(entry.trimmed) else { return client }
            client = ip
        }
        return client
    }

    /// Parses an entry: an address, with brackets or a port if the proxy adds them.
    private static func address(_ text: String) -> IPAddress? {
        if let ip = IPAddress(text) { return ip }
        if text.hasPrefix("[") { return IPAddress(String(text.dropFirst().prefix { $0 != "]" })) }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, UInt16(parts[1]) != nil else { return nil }
        return IPAddress(String(parts[0]))
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
