import Base
import CLinux
import Glibc

/// Resolves host names by the system's resolver.
enum NameLookup {
    /// Most addresses returned for one name; callers try fewer.
    private static let limit = 16

    /// Resolves a name; blocks until the system's resolver answers or gives up.
    ///
    /// - Parameter host: a name, or the text of an address, which is returned as it is.
    /// - Returns: addresses in the order in which to try them; empty if there are none or the lookup failed.
    static func addresses(of host: String) -> [IPAddress] {
        if let address = IPAddress(host) { return [address] }
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        // Only address families that this machine has configured.
        unsafe hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [IPAddress] = []
        var next = unsafe list
        while let entry = unsafe next, addresses.count < limit {
            if let address = unsafe address(of: entry.pointee), !addresses.contains(address) {
                addresses.append(address)
            }
            unsafe next = unsafe entry.pointee.ai_next
        }
        return addresses
    }

    private static func address(of entry: addrinfo) -> IPAddress? {
        guard let raw = unsafe UnsafeRawPointer(entry.ai_addr) else { return nil }
        switch unsafe (entry.ai_family, Int(entry.ai_addrlen)) {
        case (AF_INET, MemoryLayout<sockaddr_in>.size...):
            let bits = unsafe raw.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr
            return IPAddress(ipv4: UInt32(bigEndian: bits))
        case (AF_INET6, MemoryLayout<sockaddr_in6>.size...):
            let storage = unsafe raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            return unsafe withUnsafeBytes(of: storage) { bytes in
                unsafe IPAddress(
                    high: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                    low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
            }
        default: return nil
        }
    }
}
