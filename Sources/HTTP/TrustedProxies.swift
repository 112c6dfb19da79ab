import Base

/// The proxies whose word counts about who asks.
///
/// - Source: RFC 7239 §8.1: what stands before the first trusted proxy's entry may be anybody's invention.
package struct TrustedProxies: Sendable, Equatable {
    /// Addresses that begin alike.
    package struct Network: Sendable, Equatable, CustomStringConvertible {
        private let first: IPAddress
        /// Of the 128 bits that an address has in its IPv6-mapped form.
        private let length: Int

        /// - Parameter text: `10.0.0.0/8`, `fd00::/8`, or one address.
        package init?(_ text: some StringProtocol) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let head = parts.first, let ip = IPAddress(String(head)) else { return nil }
            let offset = ip.ipv4 == nil ? 0 : 96
            var length = 128
            if parts.count == 2 {
                guard let number = UInt8(parts[1]), Int(number) + offset <= 128 else { return nil }
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

    /// Empty where nobody's word counts.
    package let networks: [Network]

    package init(_ networks: [Network] = []) {
        self.networks = networks
    }

    func contains(_ ip: IPAddress) -> Bool { networks.contains { $0.contains(ip) } }

    /// Who asks: the last address in the chain that no trusted proxy has.
    /// - Parameters:
    ///   - connection: the other end of the connection.
    ///   - field: `X-Forwarded-For`, to which each proxy appends whom it heard.
    func client(of connection: IPAddress, forwardedFor field: String?) -> IPAddress {
        var client = connection
        guard let field else { return client }
        for entry in field.split(separator: ",", omittingEmptySubsequences: false).reversed() {
            guard contains(client) else { return client }
            // Whoever wrote nonsense is as far as can be known.
            guard let ip = Self.address(entry.trimmed) else { return client }
            client = ip
        }
        return client
    }

    /// An address, perhaps with a port.
    private static func address(_ text: String) -> IPAddress? {
        if let ip = IPAddress(text) { return ip }
        if text.hasPrefix("[") { return IPAddress(String(text.dropFirst().prefix { $0 != "]" })) }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, UInt16(parts[1]) != nil else { return nil }
        return IPAddress(String(parts[0]))
    }
}

extension HTTPHeaders {
    /// What proxies add to what they pass on.
    static let forwarding = [
        "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto",
        "x-forwarded-server", "x-real-ip",
    ]

    /// Whether somebody else asks than who has the connection.
    var isForwarded: Bool { fields.contains { Self.forwarding.contains($0.name) } }
}
