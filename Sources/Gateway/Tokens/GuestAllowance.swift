import Base
import Synchronization

/// How many names one address may take on where viewers need no token.
///
/// Whoever takes many could fill the list of raised hands alone.
final class GuestAllowance: Sendable {
    /// Enough for a school behind one address.
    private static let burst = 60.0
    /// A second.
    private static let rate = 1.0

    private let limits: Mutex<AddressLimits>

    init() {
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.requestBurstPerAddress = Self.burst
        settings.requestRatePerAddress = Self.rate
        limits = Mutex(AddressLimits(settings))
    }

    /// - Parameter now: in seconds since 1970.
    /// - Returns: nil when it may have one, else the seconds to wait.
    func take(_ request: HTTPRequest, at now: Int) -> Int? {
        let (ip, isForwarded) = (request.clientAddress, request.headers.isForwarded)
        let milliseconds = UInt64(max(now, 0)) &* 1_000
        return limits.withLock { limits in
            limits.forgetIdle(at: milliseconds)
            return limits.request(AddressLimits.Client(ip: ip, isForwarded: isForwarded), at: milliseconds)
        }
    }
}
