import Base

/// Limits how many requests of clients without state are answered a second: of each network, and of all together.
///
/// The limit of all bounds what a forger of addresses can have sent to others. The limit of each network keeps one
/// client from using up that of all, after which no other could begin.
struct StrangerLimit {
    private let ofEach: Int
    private let ofAll: Int
    private var since = MonotonicTime.zero
    private var count = 0
    /// Requests of this second by network; at most three entries for each that was answered.
    private var counts: [ClientNetwork: Int] = [:]

    /// - Parameters:
    ///   - ofEach: requests a second of one IPv4 address or one IPv6 /64; a larger IPv6 network has more, but never
    ///     more than half of all.
    ///   - ofAll: requests a second of all clients together.
    init(ofEach: Int, ofAll: Int) {
        self.ofEach = ofEach
        self.ofAll = ofAll
    }

    /// Counts a request.
    /// - Returns: false if a limit is reached; the request must not be answered.
    mutating func take(_ client: IPAddress, at now: MonotonicTime) -> Bool {
        if count == 0 || now - since >= .seconds(1) { (since, count, counts) = (now, 0, [:]) }
        // First, because a flood must cost little.
        guard count < ofAll else { return false }
        // Nobody forges addresses of this machine, or is shut out by others at it.
        let networks = client.isLoopback ? [] : ClientNetwork.all(of: client)
        guard
            networks.allSatisfy({
                counts[$0, default: 0] < min(ofEach * Int($0.factor), max(ofAll / 2, ofEach))
            })
        else { return false }
        count += 1
        for network in networks { counts[network, default: 0] += 1 }
        return true
    }
}
