import Base
import CWebSockets
import Glibc

/// A non-blocking listening TCP socket.
///
/// Not copyable: it owns the descriptor and closes it.
struct ListenSocket: ~Copyable {
    let descriptor: CInt
    /// The bound address, with the port that the kernel chose for port 0.
    let address: TransportAddress

    /// Binds and listens.
    /// - Throws: an error that names the address and what to change.
    init(_ wanted: TransportAddress) throws(HTTPServerError) {
        let family = wanted.ip.ipv4 == nil ? AF_INET6 : AF_INET
        let descriptor = socket(
            family, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0
        )
        guard descriptor >= 0 else { throw Self.failure(errno, wanted) }
        // A restarted server may bind while connections of the previous process are in TIME_WAIT.
        var on: CInt = 1
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
        let isBound = unsafe wanted.withSocketAddress {
            unsafe bind(descriptor, $0, $1) == 0 && listen(descriptor, 1_024) == 0
        }
        guard isBound, let address = TransportAddress(localAddressOf: descriptor) else {
            let failure = Self.failure(errno, wanted)
            close(descriptor)
            throw failure
        }
        self.descriptor = descriptor
        self.address = address
    }

    /// Takes ownership of a listening descriptor.
    init(adopting descriptor: CInt, _ address: TransportAddress) {
        self.descriptor = descriptor
        self.address = address
    }

    deinit {
        close(descriptor)
    }

    /// Hands the descriptor to the caller, which owns it from then on; a noncopyable value cannot enter a closure.
    consuming func relinquish() -> CInt {
        let descriptor = descriptor
        discard self
        return descriptor
    }

    /// Outcome of `accept`.
    enum Accepted {
        case connection(CInt, from: TransportAddress)
        /// The queue is empty.
        case nothing
        /// The process is out of descriptors or memory; the connection remains in the kernel's queue.
        case exhausted
    }

    /// Accepts one connection, without blocking.
    func accept() -> Accepted {
        while true {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let connection = unsafe withUnsafeMutablePointer(to: &storage) {
                unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe cws_accept(descriptor, $0, &length)
                }
            }
            if connection >= 0 {
                guard let address = TransportAddress(storage) else {
                    close(connection)
                    continue
                }
                return .connection(connection, from: address)
            }
            // A connection that was reset in the queue is skipped.
            switch errno {
            case EINTR, ECONNABORTED, EPROTO: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
            default: return .nothing
            }
        }
    }

    /// The error for an `errno` of socket, bind or listen.
    private static func failure(_ code: CInt, _ address: TransportAddress) -> HTTPServerError {
        switch code {
        case EADDRINUSE: .addressInUse(address)
        case EADDRNOTAVAIL: .addressNotAvailable(address)
        case EACCES, EPERM: .permissionDenied(address)
        default: unsafe .cannotListen(address, detail: String(cString: strerror(code)))
        }
    }
}

extension TransportAddress {
    /// Calls `body` with the address as a `sockaddr_in` or `sockaddr_in6` in network byte order.
    package func withSocketAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        if let bits = ip.ipv4 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = bits.bigEndian
            return unsafe withUnsafePointer(to: &address) {
                unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        unsafe withUnsafeMutableBytes(of: &address.sin6_addr) {
            unsafe $0.storeBytes(of: ip.high.bigEndian, as: UInt64.self)
            unsafe $0.storeBytes(of: ip.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        return unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
    }

    /// Reads an address that `accept` or `getsockname` has filled in; nil for other families than IPv4 and IPv6.
    init?(_ storage: sockaddr_storage) {
        var storage = storage
        switch Int32(storage.ss_family) {
        case AF_INET:
            let address = unsafe withUnsafePointer(to: &storage) {
                unsafe $0.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { unsafe $0.pointee }
            }
            self.init(
                ip: IPAddress(ipv4: UInt32(bigEndian: address.sin_addr.s_addr)),
                port: UInt16(bigEndian: address.sin_port))
        case AF_INET6:
            var address = unsafe withUnsafePointer(to: &storage) {
                unsafe $0.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { unsafe $0.pointee }
            }
            let (high, low) = unsafe withUnsafeBytes(of: &address.sin6_addr) {
                unsafe (
                    $0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
                )
            }
            self.init(
                ip: IPAddress(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low)),
                port: UInt16(bigEndian: address.sin6_port))
        default:
            return nil
        }
    }

    /// The address that a socket is bound to; nil if the kernel reports none.
    init?(localAddressOf descriptor: CInt) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutablePointer(to: &storage) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &length)
            }
        }
        guard result == 0 else { return nil }
        self.init(storage)
    }
}
