import Base

/// The addresses of sessions that ended a moment ago.
///
/// Datagrams that their clients sent before they learned of the end are still on their way, and must not count as
/// strangers'. Two sets alternate, so that no search for expired addresses is needed: an address is kept for one to
/// two turns.
struct EndedAddresses {
    /// Longer than a datagram and the notice of the end are on their way.
    static let turn = Duration.seconds(1)
    /// Maximum size of each set; if more sessions end within a turn, further addresses are not kept.
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
