import Base
import Peer

/// Where a slot stands that is sent a cached group of pictures, and how much of it may leave now.
///
/// Nothing is known of the link of a viewer who has just joined: a first burst, about a key frame, then even steps.
/// Packets that are asked for again slow the rest down.
struct Replay {
    /// The key frame that it began with, as the source counts.
    let start: Int64
    /// The next packet to send, as the source counts; live packets from here on wait for their turn.
    var next: Int64
    /// Whether the last packet sent was the last of its frame: a later key frame does not cut one in two.
    var isBetweenFrames = true
    /// When more may leave.
    private(set) var deadline: MonotonicTime
    /// In bytes a second.
    private(set) var rate: Int
    private let began: MonotonicTime
    private let minimumRate: Int
    /// Where the link does not take `minimumRate` either: little more than the source sends.
    private let crawl: Int
    /// Whatever the link takes, no more leaves.
    private let limit: Int
    /// One instant of the source on both clocks.
    private let anchor: (timestamp: UInt32, time: MonotonicTime)
    /// Bytes that may leave now.
    private var credit: Int
    private var refilled: MonotonicTime
    private var lastLoss: MonotonicTime?
    private var nextLook: MonotonicTime
    /// Whether it only spreads what is live: a key frame that would fill the path's queue at once.
    let isLive: Bool
    /// Packets that left at `minimumRate`, and that were asked for again meanwhile.
    private var atMinimum = (sent: 0, lost: 0)

    /// About 40 packets: what access networks buffer without a loss, and most key frames.
    static let firstBurst = 48 * 1_024
    /// No more leaves at once, however late the turn comes.
    static let largestStep = 24 * 1_024
    static let step = Duration.milliseconds(5)
    /// What has not come of a key frame within was lost.
    private static let longestFrame = Duration.milliseconds(100)
    private static let lookInterval = Duration.milliseconds(100)
    /// 20 Mbit/s.
    static let usualRate = 2_500_000
    /// 3 Mbit/s.
    static let slowestRate = 375_000
    /// 0.5 Mbit/s.
    static let leastRate = 62_500
    /// At the slowest rate, so many packets tell whether the link takes it.
    private static let trial = 50

    /// - Parameters:
    ///   - edge: where the live edge is now.
    ///   - bitrate: of the source, in bits a second: a replay that is no faster never ends.
    ///   - pace: bytes a second that the path is known to take; nil where nothing is known.
    init(
        from start: Int64, to edge: GOPCache.Edge, bitrate: Int, pace: Int? = nil, at now: MonotonicTime
    ) {
        self.start = start
        next = start
        isLive = false
        anchor = (edge.timestamp, edge.captured ?? edge.arrival)
        deadline = now
        refilled = now
        began = now
        nextLook = now
        let ofSource = min(max(bitrate, 0), 200_000_000) / 8
        credit = Self.burst(at: pace)
        rate = max(Self.usualRate, ofSource * 4)
        limit = .max
        minimumRate = max(Self.slowestRate, ofSource * 2)
        crawl = max(Self.leastRate, ofSource * 5 / 4)
    }

    /// Spreads what comes from `packet` on, the first one of a key frame.
    /// - Parameters:
    ///   - pace: in bytes a second.
    ///   - limit: the same, of what need not be there soon.
    init(
        spreading packet: ForwardedPacket, bitrate: Int, at pace: Int, upTo limit: Int = .max,
        now: MonotonicTime
    ) {
        self.limit = limit
        start = packet.sequenceNumber
        next = packet.sequenceNumber
        isLive = true
        anchor = (packet.timestamp, packet.captured ?? packet.arrival)
        deadline = now
        refilled = now
        began = now
        nextLook = now
        minimumRate = 0
        crawl = max(Self.leastRate, min(max(bitrate, 0), 200_000_000) / 8 * 5 / 4)
        rate = min(max(crawl, min(pace, Self.usualRate)), limit)
        credit = rate / 25
    }

    /// Whether the link took less than twice what the source sends: of what went before much is lost.
    var hasCrawled: Bool { rate < minimumRate }

    /// Whether it is time to look whether the present is still to be reached soon.
    mutating func isTimeToLook(at now: MonotonicTime) -> Bool {
        guard now >= nextLook else { return false }
        nextLook = now + Self.lookInterval
        return true
    }

    /// Whether so much of the past, and what comes meanwhile, has left within a second, but for a first burst.
    /// - Parameters:
    ///   - bitrate: of the source, in bits a second.
    ///   - rate: in bytes a second.
    static func catchesUp(bytes: Int, of bitrate: Int, at rate: Int) -> Bool {
        let gain = min(rate, usualRate) - min(max(bitrate, 0), 200_000_000) / 8
        return bytes - burst(at: rate) <= gain
    }

    /// Bytes that may leave at once: a tenth of a second of what the path takes, where that is known.
    private static func burst(at pace: Int?) -> Int {
        min(max(pace ?? .max, 0) / 10, firstBurst)
    }

    /// Whether another packet may leave; it may exceed what is left, and the next step pays for it.
    var mayGoOn: Bool { credit > 0 }

    mutating func refill(at now: MonotonicTime) {
        let elapsed = min(max(now.nanoseconds(since: refilled), 0), 1_000_000_000)
        refilled = now
        credit = min(credit + Int(elapsed) / 1_000 * rate / 1_000_000, max(credit, Self.largestStep))
        deadline = now + Self.step
    }

    /// Goes on at what the path is known to take, but not so slowly that it would never end.
    /// - Parameter pace: in bytes a second.
    mutating func go(at pace: Int) {
        rate = min(max(crawl, min(pace, Self.usualRate)), limit)
    }

    /// Goes on at the pace of a replay that this one takes the place of.
    mutating func inherit(_ other: Replay) {
        rate = max(other.rate, other.hasCrawled ? crawl : minimumRate)
        credit = other.credit
        refilled = other.refilled
        deadline = other.deadline
        lastLoss = other.lastLoss
    }

    /// When the source captured what has this time stamp.
    func time(of timestamp: UInt32) -> MonotonicTime {
        let ticks = Int64(Int32(bitPattern: timestamp &- anchor.timestamp))
        return anchor.time.advanced(byNanoseconds: MediaTicks.nanoseconds(ticks: ticks, clockRate: 90_000))
    }

    /// Whether there is more to come of the key frame that is spread: publishers send them in bursts.
    func waitsForMore(at now: MonotonicTime) -> Bool {
        isLive && !isBetweenFrames && now < began + Self.longestFrame
    }

    /// Notes a packet of the past that leaves.
    mutating func spend(_ bytes: Int) {
        credit -= bytes
        if rate == minimumRate { atMinimum.sent += 1 }
    }

    /// The viewer misses packets: it may be that its link does not take so much.
    ///
    /// Chance alone does not slow a replay below twice the source's bitrate, or a lossy link would never catch up.
    mutating func noteLoss(of packets: Int, at now: MonotonicTime) {
        if rate == minimumRate {
            atMinimum.lost += packets
            if atMinimum.sent >= Self.trial, atMinimum.lost > atMinimum.sent / 4 { rate = crawl }
        }
        if let lastLoss, now.nanoseconds(since: lastLoss) < 50_000_000 { return }
        lastLoss = now
        if rate > minimumRate { rate = max(rate / 2, minimumRate) }
    }
}

/// Decides whether a replay is an answer to a viewer who cannot go on.
///
/// On a bad network the next one may help where the last did not. Where none does, because the decoder does not take
/// the key frame that all begin with, they must not fill the viewer's link.
struct ReplayGate {
    /// At least between the beginnings of two replays, and a round trip if that is longer.
    static let minimumInterval = Duration.milliseconds(500)
    /// What replays from one and the same key frame may take, in bytes a second: 8 Mbit/s.
    static let repetitionRate = 1_000_000

    /// Between two key frames that this viewer alone has the publisher make; doubled each time, up to the longest.
    private static let shortestBeginning = Duration.milliseconds(700)
    private static let longestBeginning = Duration.seconds(8)
    /// After so long without one the next may be followed soon again.
    private static let forgiveness = Duration.seconds(20)

    private var beginnings: (last: MonotonicTime, pause: Duration)?
    private var last: (start: Int64, source: ObjectIdentifier, at: MonotonicTime)?
    /// Bytes sent since the last one began.
    private var spent = 0
    /// Replays in a row from the same key frame.
    private var tries = 0

    /// Whether it is likely that a later key frame is needed: what did not help twice will hardly help.
    var isInVain: Bool { tries > 2 }

    /// Whether what was sent last is still on its way to the viewer.
    func isUnderWay(rtt: Duration?, at now: MonotonicTime) -> Bool {
        guard let last else { return false }
        return now < last.at + max(rtt ?? .zero, Self.minimumInterval)
    }

    /// Whether the group that begins with `start` may be replayed now; if so, it counts as replayed.
    mutating func admit(
        _ start: Int64, of source: ObjectIdentifier, rtt: Duration?, at now: MonotonicTime
    ) -> Bool {
        guard !isUnderWay(rtt: rtt, at: now) else { return false }
        let isSame = last.map { $0.start == start && $0.source == source } ?? false
        if isSame, let last {
            let pause = Duration.microseconds(spent) * 1_000_000 / Self.repetitionRate
            guard now >= last.at + pause else { return false }
        }
        tries = isSame ? tries + 1 : 1
        last = (start, source, now)
        spent = 0
        return true
    }

    /// Whether a key frame may be asked for although the cache has one; if so, that counts.
    ///
    /// A viewer who says so of every picture must not have the publisher make one after the other.
    mutating func mayBeginAnew(at now: MonotonicTime) -> Bool {
        guard let (last, pause) = beginnings, now < last + Self.forgiveness else {
            beginnings = (now, Self.shortestBeginning)
            return true
        }
        guard now >= last + pause else { return false }
        beginnings = (now, min(pause * 2, Self.longestBeginning))
        return true
    }

    /// So many bytes of a replay have left.
    mutating func spend(_ bytes: Int) {
        spent &+= bytes
    }
}
