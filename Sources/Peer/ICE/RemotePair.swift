import Base
import Wire

/// One remote address that passed a connectivity check, and its history.
struct RemotePair: Equatable, Sendable {
    let address: TransportAddress
    /// The generation of the credentials in its last check; each ICE restart begins a new one.
    var generation: Int
    /// The PRIORITY of its last check with USE-CANDIDATE in this generation; nil if there was none.
    var nominatedPriority: UInt32?
    /// When an authenticated check or packet last arrived.
    var lastHeard: MonotonicTime
    /// When the client last showed that it sends media here: by USE-CANDIDATE or by an authentic packet.
    ///
    /// Plain checks do not show it: browsers also keep alive pairs that they do not use.
    var lastUsed: MonotonicTime?
    /// Whether the host at this address is known to receive there.
    var proof: AddressProof

    var isProven: Bool { proof.isGiven }
}

/// The remote addresses of one session, and the one to which media is sent.
///
/// The client decides, but Firefox and Chrome signal it differently. Firefox nominates every pair it checks and
/// then uses the one with the highest priority. Chrome nominates the pair it uses, and another one later, of any
/// priority, when its network changes. Both check their reserve pairs without USE-CANDIDATE, and Firefox even the
/// pair it uses. Four rules serve both. They apply to proven addresses; an address that is nominated but not yet
/// proven is selected as soon as it is:
/// 1. The first nominated pair is selected, and so is the first of each restart.
/// 2. A nomination of the same or a higher priority than the selected pair's moves media immediately: an address
///    that a NAT changed has the same priority.
/// 3. A pair that was used later than the selected one, and not just after the selection, takes over once the
///    selected one has been unused for `grace`. So a nomination of a worse pair loses if the client continues to
///    send on the better one, stragglers on the old path change nothing, and a client that fell back to
///    a worse network is followed after that time.
/// 4. A selected pair from which nothing arrives for `silence` gives way to the pair heard last since then.
/// - Source: RFC 8445 §8.1.1, §8.3.2 (nomination as seen by the controlled side), §2.5 (lite).
struct RemotePairs: Equatable, Sendable {
    /// As many as other servers keep; a browser with many networks and both IP versions checks about six.
    static let limit = 8
    /// Longer than packets reorder between two networks, shorter than a viewer notices.
    static let grace = Duration.milliseconds(250)
    /// Longer than the 2.5 s between Chrome's checks; Firefox sends packets on the pair it uses between its checks.
    static let silence = Duration.seconds(5)
    /// How long a nomination waits for the proof of its address: longer than three requests and a slow round trip.
    static let patience = Duration.seconds(2)

    private struct Nomination: Equatable {
        let address: TransportAddress
        var since: MonotonicTime
    }

    private(set) var all: [RemotePair] = []
    private(set) var selected: TransportAddress?
    private var selectedAt = MonotonicTime.zero
    /// The nominated address that is not proven yet.
    private var pending: Nomination?

    /// The selected address; before there is one, the nominated address that is not proven yet.
    var nominated: TransportAddress? { selected ?? pending?.address }

    /// Records an authentic check.
    ///
    /// - Returns: the address that was dropped to make room, if this one is new and the limit was reached.
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

    /// Whether datagrams from an address show that the client is there: it is proven, or no address is selected
    /// yet.
    func isBelieved(_ address: TransportAddress) -> Bool {
        guard let pair = pair(address) else { return false }
        return pair.isProven || selected == nil
    }

    /// Applies rules 1 and 2 to a check with USE-CANDIDATE from `address`.
    ///
    /// - Returns: whether the selection changed.
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

    /// Schedules requests to an address, unless it is proven.
    mutating func inquire(_ address: TransportAddress, at now: MonotonicTime) {
        guard let index = all.firstIndex(where: { $0.address == address }),
            case .wanted(var inquiry) = all[index].proof
        else { return }
        inquiry.begin(at: now)
        all[index].proof = .wanted(inquiry)
    }

    /// The address that is due for a request first, and when.
    var nextInquiry: (address: TransportAddress, due: MonotonicTime)? {
        var next: (address: TransportAddress, due: MonotonicTime)?
        for pair in all {
            guard let due = pair.proof.inquiry?.due, due < next?.due ?? .distantFuture else { continue }
            next = (pair.address, due)
        }
        return next
    }

    /// Counts a request to an address.
    ///
    /// - Returns: the transaction id to send now; nil for an address that needs no request.
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

    /// The transaction id of the requests to an address; nil if there were none, or one was answered.
    func transactionID(of address: TransportAddress) -> STUNTransactionID? {
        pair(address)?.proof.inquiry?.transactionID
    }

    /// Records that an address answered a request.
    ///
    /// - Returns: whether the selection changed.
    mutating func answered(_ address: TransportAddress, at now: MonotonicTime) -> Bool {
        guard let index = all.firstIndex(where: { $0.address == address }), !all[index].isProven else {
            return false
        }
        all[index].lastHeard = now
        return prove(index, at: now)
    }

    /// Records that the DTLS handshake completed.
    ///
    /// - Parameter address: the only address that received our half of it; nil if there were several.
    /// - Returns: whether the selection changed.
    mutating func madeHandshake(through address: TransportAddress?, at now: MonotonicTime) -> Bool {
        var isChanged = false
        if let index = all.firstIndex(where: { $0.address == address }) {
            // The client has not nominated a pair yet, or never does.
            if nominated == nil { pending = Nomination(address: all[index].address, since: now) }
            isChanged = prove(index, at: now)
        }
        if let waiting = pending?.address {
            pending?.since = now
            inquire(waiting, at: now)
        }
        return isChanged
    }

    /// Marks an address as proven, and selects it if it was waiting for that.
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

    /// Applies rules 3 and 4.
    ///
    /// - Returns: whether the selection changed.
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

    /// When rule 3 or 4 moves media, if the selected pair stays silent or unused until then.
    var takeover: MonotonicTime? {
        guard let used = usedTakeover else { return silentTakeover }
        return silentTakeover.map { min($0, used) } ?? used
    }

    /// Rule 3: the end of `grace` for the selected pair; nil without a rival.
    private var usedTakeover: MonotonicTime? {
        guard rival != nil, let used = selected.flatMap(pair)?.lastUsed else { return nil }
        return used + Self.grace
    }

    /// Rule 4: the end of `silence` for the selected pair; nil without a successor.
    private var silentTakeover: MonotonicTime? {
        guard successor != nil, let heard = selected.flatMap(pair)?.lastHeard else { return nil }
        return max(heard, selectedAt) + Self.silence
    }

    /// The proven pair heard last, if the selected one has not been heard since.
    private var successor: RemotePair? {
        guard let current = selected.flatMap(pair) else { return nil }
        let latest = current.lastHeard + Self.grace
        return all.filter { $0.isProven && $0.generation >= current.generation && $0.lastHeard > latest }
            .max { $0.lastHeard < $1.lastHeard }
    }

    /// The proven pair used last, if rule 3 prefers it to the selected one.
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

    /// Removes a pair whose TCP connection closed.
    ///
    /// If it was the selected one, the proven pair that the client used last replaces it: a pair that was
    /// nominated, or else one that the client keeps in reserve.
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

    /// Drops the pair heard longest ago, other than the selected and the nominated one.
    private mutating func forgetQuietest() -> TransportAddress? {
        let spare = all.indices.filter { all[$0].address != selected && all[$0].address != pending?.address }
        guard let index = spare.min(by: { all[$0].lastHeard < all[$1].lastHeard }) else { return nil }
        return all.remove(at: index).address
    }
}
