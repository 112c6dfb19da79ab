import Base

/// Where sessions were that ended a moment ago.
///
/// What their clients sent before they heard of the end is still on its way, and comes from no stranger. Two sets take
/// turns, so that nobody has to look for what is over: an address is kept for one to two turns.
struct EndedAddresses {
    /// Longer than a datagram and the news of the end are on their way.
    static let turn = Duration.seconds(1)
    /// Of each set; where more sessions end within a turn, the addresses of the rest are not kept.
    static let capacity = 4_096

    private var recent: Set<TransportAddress> = []
    private var earlier: Set<TransportAddress> = []
    /// When the turn of `recent` began.
    private var began = MonotonicTime.zero

    mutating func insert(_ address: TransportAddress, at now: MonotonicTime) {
        turn(at: now)
        if recent.count < Self.capacity { recent.insert(address) }
    }

    mutating func contains(_ address: TransportAddress, at now: MonotonicTime) -> Bool {
        guard !recent.isEmpty || !earlier.isEmpty else { return false }
        turn(at: now)
        return recent.contains(address) || earlier.contains(address)
    }

    private mutating func turn(at now: MonotonicTime) {
        let elapsed = now - began
        guard elapsed >= Self.turn else { return }
        earlier = elapsed >= Self.turn * 2 ? [] : recent
        recent = []
        began = now
    }
}

extension Worker {
    /// Counts a datagram that belongs to no session.
    func countHomeless(from source: TransportAddress, at now: MonotonicTime) {
        if ended.contains(source, at: now) { counters.afterTheEnd &+= 1 } else { counters.strangers &+= 1 }
    }
}
