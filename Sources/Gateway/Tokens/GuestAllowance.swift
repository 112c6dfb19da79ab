import Base
import HTTP
import Synchronization

/// Limits how many guest identities one address may obtain, by links and on servers with public viewers.
///
/// With many identities one person could fill the stage or the list of raised hands. The limit makes that slow, or
/// takes many addresses.
final class GuestAllowance: Sendable {
    private struct State {
        var limits: AddressLimits
        /// When idle addresses were last removed; nil before the first request.
        var sweptAt: MonotonicTime?
    }

    /// Identities in one moment: enough for a school class behind one address.
    private static let burst = 60.0
    /// Further identities per second.
    private static let rate = 1.0
    /// For the `RateLimit-Policy` field of a refusal.
    static let quota = RateLimit.Quota(burst: burst, rate: rate)

    private let state: Mutex<State>

    init() {
        // `AddressLimits` reads only the two limits below; the address is a placeholder.
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.requestBurstPerAddress = Self.burst
        settings.requestRatePerAddress = Self.rate
        state = Mutex(State(limits: AddressLimits(settings)))
    }

    /// Counts one identity for the client of a request.
    /// - Parameter now: by a clock that is never set, which would give or take allowance.
    /// - Returns: nil if the client may have it, otherwise the seconds to wait.
    func take(_ request: HTTPRequest, at now: MonotonicTime) -> Int? {
        let (ip, isForwarded) = (request.clientAddress, request.isForwarded)
        let milliseconds = UInt64(max(now.nanoseconds, 0)) / 1_000_000
        return state.withLock { state in
            // Visits all addresses, so it runs once a second at most, however many requests come.
            if state.sweptAt.map({ now - $0 >= .seconds(1) }) ?? true {
                state.sweptAt = now
                state.limits.forgetIdle(at: milliseconds)
            }
            return state.limits.request(
                AddressLimits.Client(ip: ip, isForwarded: isForwarded), at: milliseconds)
        }
    }
}
