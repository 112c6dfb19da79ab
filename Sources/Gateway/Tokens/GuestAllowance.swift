import Base
import HTTP
import Synchronization

/// How many names one address may take, by links and where viewers need no token.
///
/// Whoever takes many could fill the stage, or the list of raised hands; it takes longer this way, and more addresses.
final class GuestAllowance: Sendable {
    private struct State {
        var limits: AddressLimits
        /// When idle addresses were last forgotten, in seconds since 1970.
        var sweptAt = Int.min
    }

    /// Enough for a school behind one address.
    private static let burst = 60.0
    /// A second.
    private static let rate = 1.0
    /// As those who have taken too many are told.
    static let quota = RateLimit.Quota(burst: burst, rate: rate)

    private let state: Mutex<State>

    init() {
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.requestBurstPerAddress = Self.burst
        settings.requestRatePerAddress = Self.rate
        state = Mutex(State(limits: AddressLimits(settings)))
    }

    /// - Parameter now: in seconds since 1970.
    /// - Returns: nil when it may have one, else the seconds to wait.
    func take(_ request: HTTPRequest, at now: Int) -> Int? {
        let (ip, isForwarded) = (request.clientAddress, request.isForwarded)
        let milliseconds = UInt64(max(now, 0)) &* 1_000
        return state.withLock { state in
            // All of them are looked at: once a second, however many ask.
            if state.sweptAt != now {
                state.sweptAt = now
                state.limits.forgetIdle(at: milliseconds)
            }
            return state.limits.request(
                AddressLimits.Client(ip: ip, isForwarded: isForwarded), at: milliseconds)
        }
    }
}
