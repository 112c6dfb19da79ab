import Base
import CLinux
import Glibc

/// Asks the system for the addresses of a name.
enum NameLookup {
    /// Of one name; more are not tried anyway.
    private static let limit = 16

    /// Blocks as long as the system's resolver takes, which gives up by itself.
    /// - Parameter host: a name, or an address, which is its own answer.
    /// - Returns: in the order in which they are to be tried; empty where there are none.
    static func addresses(of host: String) -> [IPAddress] {
        if let address = IPAddress(host) { return [address] }
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        // No addresses of a family that this machine has not.
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
