import Base

/// Emulates a slow link with a queue in front of it: delays datagrams, and drops those that do not fit.
///
/// Reads no clock: datagrams enter with their arrival time and leave with a delivery time. Its memory is bounded: the
/// queue holds what the link transmits in the longest wait, and what arrives during a gap of the link.
struct ImpairedLink {
    /// A datagram that has passed the link.
    struct Delivery {
        var bytes: [UInt8]
        let source: TransportAddress
        /// When its last bit arrives at the viewer.
        let time: MonotonicTime
    }

    /// What happened to datagrams since the previous account.
    struct Account: Equatable {
        /// Bytes that the server sent, and bytes that were delivered; both with IPv4 and UDP headers.
        var offered = 0
        var delivered = 0
        /// Datagrams dropped by a full queue, and datagrams lost by chance.
        var overflowed = 0
        var lost = 0
        /// The longest wait of a datagram in the queue, in milliseconds.
        var longestWait = 0.0
    }

    /// Bytes of IPv4 and UDP headers, which use the link's capacity, too.
    private static let overhead = 28
    /// The most datagrams that wait, whatever the profile allows.
    private static let most = 20_000

    let profile: NetworkProfile
    private let began: MonotonicTime
    private var random: SplitMix64
    /// In order of delivery; those before `first` have been taken.
    private var waiting: [Delivery] = []
    private var first = 0
    /// When the link has transmitted all it accepted, in seconds since the beginning.
    private var free = 0.0
    /// The latest delivery so far; no datagram overtakes another.
    private var lastTime = MonotonicTime.zero
    private var account = Account()

    /// - Parameter seed: decides which packets are lost and delayed; the same in every run, so that runs compare.
    init(_ profile: NetworkProfile, seed: UInt64 = 1, at now: MonotonicTime) {
        self.profile = profile
        began = now
        random = SplitMix64(seed: seed)
    }

    func seconds(at now: MonotonicTime) -> Double { Double(now.nanoseconds(since: began)) / 1e9 }

    /// When the next datagram is delivered; nil if none is on its way.
    var next: MonotonicTime? { first < waiting.count ? waiting[first].time : nil }

    /// Queues a datagram, or drops it.
    ///
    /// - Parameter now: when it reached the socket; must not decrease from one call to the next.
    mutating func append(_ bytes: [UInt8], from source: TransportAddress, at now: MonotonicTime) {
        let size = bytes.count + Self.overhead
        account.offered += size
        let time = seconds(at: now)
        let start = max(free, time)
        // To the nanosecond: the difference of seconds is not exact, and may exceed the longest wait by almost nothing.
        let wait = ((start - time) * 1e9).rounded() / 1e6
        guard wait <= profile.queue, waiting.count - first < Self.most else { return account.overflowed += 1 }
        account.longestWait = max(account.longestWait, wait)
        free = end(of: Double(size) * 8, from: start)
        // Packets are lost behind the queue, so a lost one has used the link's capacity.
        guard profile.loss <= 0 || Double.random(in: 0..<1, using: &random) >= profile.loss else {
            return account.lost += 1
        }
        let jitter = profile.jitter > 0 ? Double.random(in: 0...profile.jitter, using: &random) : 0
        let through = free + (profile.roundTrip + jitter) / 1_000
        lastTime = max(lastTime, began.advanced(byNanoseconds: Int64((through * 1e9).rounded())))
        waiting.append(Delivery(bytes: bytes, source: source, time: lastTime))
    }

    /// When a number of bits is transmitted that starts at `start`, at the capacities of the profile's steps.
    private func end(of bits: Double, from start: Double) -> Double {
        var (left, time) = (bits, start)
        let later = profile.steps.filter { $0.start > start }
        for step in later {
            let passed = Double(profile.capacity(at: time)) * (step.start - time)
            guard passed < left else { break }
            left -= passed
            time = step.start
        }
        // The floor keeps the time finite if the profile ends with a gap.
        return time + left / Double(max(profile.capacity(at: time), 1_000))
    }

    /// Removes the next datagram that is delivered by `now`.
    mutating func take(at now: MonotonicTime) -> Delivery? {
        guard let next, next <= now else { return nil }
        let delivery = waiting[first]
        // Frees the memory now; the array itself is shortened only now and then, because that moves all others.
        waiting[first].bytes = []
        first += 1
        if first > 1_000 {
            waiting.removeFirst(first)
            first = 0
        }
        account.delivered += delivery.bytes.count + Self.overhead
        return delivery
    }

    /// Returns the account since the last call, and starts a new one.
    mutating func takeAccount() -> Account {
        defer { account = Account() }
        return account
    }
}
