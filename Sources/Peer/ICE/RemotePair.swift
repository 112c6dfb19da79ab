import Base
import Wire

/// One remote address that passed a connectivity check, and what is known of it.
struct RemotePair: Equatable, Sendable {
    let address: TransportAddress
    /// Which credentials its last check used; counts ICE restarts.
    var generation: Int
    /// The PRIORITY of its last check with USE-CANDIDATE in this generation; nil if there was none.
    var nominatedPriority: UInt32?
    /// When an authenticated check or packet last came.
    var lastHeard: MonotonicTime
    /// When the client last showed that it sends media here: by USE-CANDIDATE or by an authentic packet.
    ///
    /// Plain checks do not show it: browsers also keep pairs alive which they do not use.
    var lastUsed: MonotonicTime?
    var proof: AddressProof

    var isProven: Bool { proof.isGiven }
}

/// The remote addresses of one session, and which of them media is sent to.
///
/// The client decides, but Firefox and Chrome say so in different ways: Firefox nominates every pair it
/// checks and then uses the one with the highest priority; Chrome nominates the one it uses, and another one
/// later, of whatever priority, when its network changes; both check without USE-CANDIDATE what they keep in
/// reserve, and Firefox even what it uses. Four rules serve them all, among the addresses that are proven; one that is
/// nominated and not proven yet is selected as soon as it is:
/// 1. The first nominated pair is selected, and so is the first of each restart.
/// 2. A nomination of the same or a higher priority than the selected pair's moves media at once: an address
///    that a NAT changed has the same priority.
/// 3. A pair that was used later than the selected one, and not just after the selection, takes over once the
///    selected one has been unused for `grace`. So a nomination of a worse pair loses if the client goes on
///    sending on the better one, stragglers on the old path change nothing, and a client that fell back to
///    a worse network is followed after that time.
/// 4. A selected pair from which nothing came at all for `silence` gives way to the one heard last since.
/// - Source: RFC 8445 §8.1.1, §8.3.2 (nomination as seen by the controlled side), §2.5 (lite).
struct RemotePairs: Equatable, Sendable {
    /// As many as other servers keep; a browser with many networks and both IP versions checks about six.
    static let limit = 8
    /// Longer than reordering between two networks takes, shorter than a viewer notices.
    static let grace = Duration.milliseconds(250)
    /// Longer than the 2.5 s between Chrome's checks; what Firefox uses is heard by its packets between its checks.
    static let silence = Duration.seconds(5)
    /// How long a nomination waits for the proof of its address: longer than the three requests and a slow round trip.
    static let patience = Duration.seconds(2)

    private struct Nomination: Equatable {
        let address: TransportAddress
        var since: MonotonicTime
    }

    private(set) var all: [RemotePair] = []
    private(set) var selected: TransportAddress?
    private var selectedAt = MonotonicTime.zero
    /// The nomination that waits for the proof of its address.
    private var pending: Nomination?

    /// The selected address, or before there is one that of the nomination that waits for its proof.
    var nominated: TransportAddress? { selected ?? pending?.address }

    /// Records an authentic check.
    ///
    /// - Returns: the address that was forgotten to make room, if this one is new and there were too many.
    mutating func heardCheck(
        from address: TransportAddress, generation: Int, nominating priority: UInt32?, at now: MonotonicTime
    ) -> TransportAddress? {
        if let index = all.firstIndex(where: { $0.address == address }) {
            if all[index].generation < generation {
                all[index].generation = generation
                all[index].nominatedPriority = nil
            }
            all[index].lastHeard = now
            if let priority {
                all[index].nominatedPriority = priority
                all[index].lastUsed = now
            }
            return nil
        }
        let forgotten = all.count < Self.limit ? nil : forgetQuietest()
        all.append(
            RemotePair(
                address: address, generation: generation, nominatedPriority: priority, lastHeard: now,
                lastUsed: priority == nil ? nil : now, proof: AddressProof(for: address)))
        return forgotten
    }

    /// Records an authentic packet.
    ///
    /// - Returns: whether it shows that the client is there; see `isBelieved`.
    mutating func heardTraffic(from address: TransportAddress, at now: MonotonicTime) -> Bool {
        for index in all.indices where all[index].address == address {
            all[index].lastHeard = now
            all[index].lastUsed = now
            return all[index].isProven || selected == nil
        }
        return false
    }

    /// Whether what comes from an address shows that the client is there: it is proven, or none is yet.
    func isBelieved(_ address: TransportAddress) -> Bool {
        guard let pair = pair(address) else { return false }
        return pair.isProven || selected == nil
    }

    /// Rules 1 and 2, for a check with USE-CANDIDATE from `address`.
    ///
    /// - Returns: whether another address is selected now.
    mutating func nominate(_ address: TransportAddress, at now: MonotonicTime) -> Bool {
        guard selected != address, let pair = pair(address), let priority = pair.nominatedPriority else {
            return false
        }
        let waiting = pending.flatMap { now < $0.since + Self.patience ? $0.address : nil }
        if let current = (waiting ?? selected).flatMap(self.pair), current.generation == pair.generation,
            let currentPriority = current.nominatedPriority, currentPriority > priority
        {
            return false
        }
        guard pair.isProven else {
            pending = Nomination(address: address, since: now)
            return false
        }
        pending = nil
        select(address, at: now)
        return true
    }

    private mutating func select(_ address: TransportAddress, at now: MonotonicTime) {
        if pending?.address == address { pending = nil }
        selected = address
        selectedAt = now
    }

    // MARK: Proof

    func isProven(_ address: TransportAddress) -> Bool { pair(address)?.isProven ?? false }

    /// Has an address asked, unless it is proven.
    mutating func inquire(_ address: TransportAddress, at now: MonotonicTime) {
        guard let index = all.firstIndex(where: { $0.address == address }),
            case .wanted(var inquiry) = all[index].proof
        else { return }
        inquiry.begin(at: now)
        all[index].proof = .wanted(inquiry)
    }

    /// The address to be asked next, and when.
    var nextInquiry: (address: TransportAddress, due: MonotonicTime)? {
        var next: (address: TransportAddress, due: MonotonicTime)?
        for pair in all {
            guard let due = pair.proof.inquiry?.due, due < next?.due ?? .distantFuture else { continue }
            next = (pair.address, due)
        }
        return next
    }

    /// - Returns: the transaction id of the request that is to be sent now; nil for an address that needs none.
    mutating func ask(
        _ address: TransportAddress, at now: MonotonicTime, using random: inout some RandomNumberGenerator
    ) -> STUNTransactionID? {
        guard let index = all.firstIndex(where: { $0.address == address }),
            case .wanted(var inquiry) = all[index].proof
        else { return nil }
        let id = inquiry.ask(at: now, using: &random)
        all[index].proof = .wanted(inquiry)
        return id
    }

    /// Of the requests that an address was sent; nil if there were none, or one was answered.
    func transactionID(of address: TransportAddress) -> STUNTransactionID? {
        pair(address)?.proof.inquiry?.transactionID
    }

    /// Records that an address answered.
    ///
    /// - Returns: whether another address is selected now.
    mutating func answered(_ address: TransportAddress, at now: MonotonicTime) -> Bool {
        guard let index = all.firstIndex(where: { $0.address == address }), !all[index].isProven else {
            return false
        }
        all[index].lastHeard = now
        return prove(index, at: now)
    }

    /// Records that the handshake was made.
    ///
    /// - Parameter address: the only one that our half of it went to; nil if there were several.
    /// - Returns: whether another address is selected now.
    mutating func madeHandshake(through address: TransportAddress?, at now: MonotonicTime) -> Bool {
        var isChanged = false
        if let index = all.firstIndex(where: { $0.address == address }) {
            // Somebody who has not nominated yet, or never does.
            if nominated == nil { pending = Nomination(address: all[index].address, since: now) }
            isChanged = prove(index, at: now)
        }
        if let waiting = pending?.address {
            pending?.since = now
            inquire(waiting, at: now)
        }
        return isChanged
    }

    private mutating func prove(_ index: Int, at now: MonotonicTime) -> Bool {
        all[index].proof = .given
        let pair = all[index]
        let isPending = pending?.address == pair.address
        if let selected {
            guard isPending, selected != pair.address, let pending, now < pending.since + Self.patience else {
                return false
            }
        } else {
            guard isPending || pair.lastUsed != nil else { return false }
        }
        select(pair.address, at: now)
        return true
    }

    // MARK: Use

    /// Rules 3 and 4.
    ///
    /// - Returns: whether another address is selected now.
    mutating func followUse(at now: MonotonicTime) -> Bool {
        let next: RemotePair?
        if let used = usedTakeover, used <= now {
            next = rival
        } else if let silent = silentTakeover, silent <= now {
            next = successor
        } else {
            next = nil
        }
        guard let next else { return false }
        select(next.address, at: now)
        return true
    }

    /// When rule 3 or 4 moves media, if the selected pair stays as it is until then.
    var takeover: MonotonicTime? {
        guard let used = usedTakeover else { return silentTakeover }
        return silentTakeover.map { min($0, used) } ?? used
    }

    private var usedTakeover: MonotonicTime? {
        guard rival != nil, let used = selected.flatMap(pair)?.lastUsed else { return nil }
        return used + Self.grace
    }

    private var silentTakeover: MonotonicTime? {
        guard successor != nil, let heard = selected.flatMap(pair)?.lastHeard else { return nil }
        return max(heard, selectedAt) + Self.silence
    }

    /// The pair heard last, if the selected one was not heard since.
    private var successor: RemotePair? {
        guard let current = selected.flatMap(pair) else { return nil }
        let latest = current.lastHeard + Self.grace
        return all.filter { $0.isProven && $0.generation >= current.generation && $0.lastHeard > latest }
            .max { $0.lastHeard < $1.lastHeard }
    }

    /// The pair used last, if rule 3 prefers it to the selected one.
    private var rival: RemotePair? {
        guard let current = selected.flatMap(pair), let used = current.lastUsed else { return nil }
        var latest = max(used, selectedAt + Self.grace)
        var rival: RemotePair?
        for pair in all where pair.isProven && pair.generation >= current.generation {
            guard let used = pair.lastUsed, used > latest else { continue }
            latest = used
            rival = pair
        }
        return rival
    }

    private func pair(_ address: TransportAddress) -> RemotePair? {
        all.first { $0.address == address }
    }

    /// Forgets a pair whose connection is gone.
    ///
    /// If it was the selected one, the proven pair that the client used last takes its place: one that was nominated,
    /// or else one that it keeps in reserve.
    /// - Returns: false if there was no such pair.
    mutating func remove(_ address: TransportAddress, at now: MonotonicTime) -> Bool {
        guard let index = all.firstIndex(where: { $0.address == address }) else { return false }
        all.remove(at: index)
        if pending?.address == address { pending = nil }
        guard selected == address else { return true }
        let proven = all.filter(\.isProven)
        let used = proven.filter { $0.lastUsed != nil }
        let next = (used.isEmpty ? proven : used).max { first, second in
            (first.generation, first.lastUsed ?? first.lastHeard)
                < (second.generation, second.lastUsed ?? second.lastHeard)
        }
        selected = next?.address
        selectedAt = now
        return true
    }

    private mutating func forgetQuietest() -> TransportAddress? {
        let spare = all.indices.filter { all[$0].address != selected && all[$0].address != pending?.address }
        guard let index = spare.min(by: { all[$0].lastHeard < all[$1].lastHeard }) else { return nil }
        return all.remove(at: index).address
    }
}
