import Base

/// Holds datagrams back as a slow link with a queue before it would, and drops what does not fit.
///
/// Holds no clock: takes datagrams with the time they came, and gives them out with the time they are through. Bounded
/// by its queue: no more waits than the link takes in the longest wait, and what a gap of the link leaves.
struct ImpairedLink {
    /// A datagram that is through.
    struct Delivery {
        var bytes: [UInt8]
        let source: TransportAddress
        let time: MonotonicTime
    }

    /// What became of datagrams since the last look.
    struct Account: Equatable {
        /// Bytes that the server sent, headers of IPv4 and UDP included; and those that came through.
        var offered = 0
        var delivered = 0
        /// Datagrams that found the queue full, and those that got lost by chance.
        var overflowed = 0
        var lost = 0
        /// Milliseconds, the most that one waited before the link.
        var longestWait = 0.0
    }

    /// Headers of IPv4 and UDP, which a link carries, too.
    private static let overhead = 28
    /// Datagrams that wait at most, whatever the profile says.
    private static let most = 20_000

    let profile: NetworkProfile
    private let began: MonotonicTime
    private var random: SplitMix64
    private var waiting: [Delivery] = []
    private var first = 0
    /// Seconds since the beginning, when the link is free again.
    private var free = 0.0
    private var lastTime = MonotonicTime.zero
    private var account = Account()

    init(_ profile: NetworkProfile, seed: UInt64 = 1, at now: MonotonicTime) {
        self.profile = profile
        began = now
        random = SplitMix64(seed: seed)
    }

    func seconds(at now: MonotonicTime) -> Double { Double(now.nanoseconds(since: began)) / 1e9 }

    /// When the next datagram is through.
    var next: MonotonicTime? { first < waiting.count ? waiting[first].time : nil }

    mutating func append(_ bytes: [UInt8], from source: TransportAddress, at now: MonotonicTime) {
        let size = bytes.count + Self.overhead
        account.offered += size
        let time = seconds(at: now)
        let start = max(free, time)
        let wait = (start - time) * 1_000
        guard wait <= profile.queue, waiting.count - first < Self.most else { return account.overflowed += 1 }
        account.longestWait = max(account.longestWait, wait)
        free = end(of: Double(size) * 8, from: start)
        // The queue is before the place where packets get lost by chance: those have used the link.
        guard profile.loss <= 0 || Double.random(in: 0..<1, using: &random) >= profile.loss else {
            return account.lost += 1
        }
        let jitter = profile.jitter > 0 ? Double.random(in: 0...profile.jitter, using: &random) : 0
        let through = free + (profile.roundTrip + jitter) / 1_000
        lastTime = max(lastTime, began.advanced(byNanoseconds: Int64((through * 1e9).rounded())))
        waiting.append(Delivery(bytes: bytes, source: source, time: lastTime))
    }

    /// When so many bits have passed that begin to pass at `start`; a change of the capacity counts from then on.
    private func end(of bits: Double, from start: Double) -> Double {
        var (left, time) = (bits, start)
        let later = profile.steps.filter { $0.start > start }
        for step in later {
            let passed = Double(profile.capacity(at: time)) * (step.start - time)
            guard passed < left else { break }
            left -= passed
            time = step.start
        }
        return time + left / Double(max(profile.capacity(at: time), 1_000))
    }

    /// The next datagram that is through by `now`.
    mutating func take(at now: MonotonicTime) -> Delivery? {
        guard let next, next <= now else { return nil }
        let delivery = waiting[first]
        waiting[first].bytes = []
        first += 1
        if first > 1_000 {
            waiting.removeFirst(first)
            first = 0
        }
        account.delivered += delivery.bytes.count + Self.overhead
        return delivery
    }

    /// What became of datagrams since the last call.
    mutating func takeAccount() -> Account {
        defer { account = Account() }
        return account
    }
}
