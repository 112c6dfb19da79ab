import Base
import Peer

/// The progress of a slot that is sent a cached group of pictures, and how much may be sent now.
///
/// Nothing is known about the link of a viewer who has just joined. So there is a first burst of about a key frame,
/// then even steps, and requests for retransmission slow the rest down.
struct Replay {
    /// The key frame that the replay began with, in the source's numbers.
    let start: Int64
    /// The next packet to send, in the source's numbers; live packets from here on wait for their turn.
    var next: Int64
    /// Whether the last packet sent ended its frame, so that a later key frame may replace the rest.
    var isBetweenFrames = true
    /// When more may be sent.
    private(set) var deadline: MonotonicTime
    /// Present rate, in bytes a second.
    private(set) var rate: Int
    private let began: MonotonicTime
    /// Ordinary loss does not slow the replay below this rate, in bytes a second.
    private let minimumRate: Int
    /// Rate for a link that cannot carry `minimumRate` either: little more than the source's, in bytes a second.
    private let crawl: Int
    /// Upper limit of the rate, in bytes a second, whatever the link can carry.
    private let limit: Int
    /// One instant of the source, as RTP timestamp and on the server's clock.
    private let anchor: (timestamp: UInt32, time: MonotonicTime)
    /// Bytes that may be sent now; negative after a packet that exceeded it.
    private var credit: Int
    private var refilled: MonotonicTime
    private var lastLoss: MonotonicTime?
    private var nextLook: MonotonicTime
    /// Whether it only spreads live packets: a key frame that would fill the path's queue at once.
    let isLive: Bool
    /// Packets sent at `minimumRate`, and packets requested again meanwhile.
    private var atMinimum = (sent: 0, lost: 0)

    /// Size of the first burst, in bytes: about 40 packets, which access networks buffer without loss; most key
    /// frames fit.
    static let firstBurst = 48 * 1_024
    /// Maximum size of a step, in bytes, however late it comes.
    static let largestStep = 24 * 1_024
    /// Time between two steps.
    static let step = Duration.milliseconds(5)
    /// Time after which missing packets of a key frame count as lost.
    private static let longestFrame = Duration.milliseconds(100)
    private static let lookInterval = Duration.milliseconds(100)
    /// 20 Mbit/s, in bytes a second.
    static let usualRate = 2_500_000
    /// 3 Mbit/s, in bytes a second.
    static let slowestRate = 375_000
    /// 0.5 Mbit/s, in bytes a second.
    static let leastRate = 62_500
    /// Number of packets at the minimum rate after which it is judged whether the link can carry it.
    private static let trial = 50

    /// Starts a replay of the past.
    /// - Parameters:
    ///   - start: the key frame to begin with, in the source's numbers.
    ///   - edge: the source's newest packet now.
    ///   - bitrate: bit rate of the source, in bits a second, because a replay that is no faster never ends.
    ///   - pace: rate that the path is known to carry, in bytes a second; nil if unknown.
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

    /// Spreads live packets from `packet` on, which is the first one of a key frame.
    /// - Parameters:
    ///   - pace: rate that the path is known to carry, in bytes a second.
    ///   - limit: upper limit for media that is not urgent, in bytes a second.
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

    /// Whether the link carried less than twice the source's rate, so that much of what was sent is lost.
    var hasCrawled: Bool { rate < minimumRate }

    /// Whether it is time to check whether the live edge will be reached soon.
    mutating func isTimeToLook(at now: MonotonicTime) -> Bool {
        guard now >= nextLook else { return false }
        nextLook = now + Self.lookInterval
        return true
    }

    /// Whether this much of the past, and what arrives meanwhile, can be sent within a second after the first burst.
    /// - Parameters:
    ///   - bytes: size of the past to send.
    ///   - bitrate: bit rate of the source, in bits a second.
    ///   - rate: rate of sending, in bytes a second.
    static func catchesUp(bytes: Int, of bitrate: Int, at rate: Int) -> Bool {
        let gain = min(rate, usualRate) - min(max(bitrate, 0), 200_000_000) / 8
        return bytes - burst(at: rate) <= gain
    }

    /// Size of the first burst, in bytes: a tenth of a second of the path's capacity, if that is known.
    private static func burst(at pace: Int?) -> Int {
        min(max(pace ?? .max, 0) / 10, firstBurst)
    }

    /// Whether another packet may be sent; the next step makes up for what exceeds the credit.
    var mayGoOn: Bool { credit > 0 }

    /// Adds credit for the time that has passed, and sets the next deadline.
    mutating func refill(at now: MonotonicTime) {
        let elapsed = min(max(now.nanoseconds(since: refilled), 0), 1_000_000_000)
        refilled = now
        credit = min(credit + Int(elapsed) / 1_000 * rate / 1_000_000, max(credit, Self.largestStep))
        deadline = now + Self.step
    }

    /// Follows the path's capacity, but never so slowly that the replay would not end.
    /// - Parameter pace: in bytes a second.
    mutating func go(at pace: Int) {
        rate = min(max(crawl, min(pace, Self.usualRate)), limit)
    }

    /// Takes over the pace of a replay that this one replaces.
    mutating func inherit(_ other: Replay) {
        rate = max(other.rate, other.hasCrawled ? crawl : minimumRate)
        credit = other.credit
        refilled = other.refilled
        deadline = other.deadline
        lastLoss = other.lastLoss
    }

    /// When the source captured the media with this timestamp, on the server's clock.
    func time(of timestamp: UInt32) -> MonotonicTime {
        let ticks = Int64(Int32(bitPattern: timestamp &- anchor.timestamp))
        return anchor.time.advanced(byNanoseconds: MediaTicks.nanoseconds(ticks: ticks, clockRate: 90_000))
    }

    /// Whether more packets of the key frame being spread may still arrive, because publishers send them in bursts.
    func waitsForMore(at now: MonotonicTime) -> Bool {
        isLive && !isBetweenFrames && now < began + Self.longestFrame
    }

    /// Records a packet that is sent.
    mutating func spend(_ bytes: Int) {
        credit -= bytes
        if rate == minimumRate { atMinimum.sent += 1 }
    }

    /// Slows down after the viewer reported missing packets, because its link may not carry the rate.
    ///
    /// Random loss does not slow a replay below its minimum rate, or a lossy link would never catch up.
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

/// Decides whether a viewer who cannot decode is answered by a replay.
///
/// On a bad network another replay may help where the last one did not. If none helps, because the decoder rejects
/// the key frame that all of them begin with, they must not fill the viewer's link.
struct ReplayGate {
    /// Minimum time between the beginnings of two replays, or a round trip if that is longer.
    static let minimumInterval = Duration.milliseconds(500)
    /// Rate limit for replays from the same key frame, in bytes a second: 8 Mbit/s.
    static let repetitionRate = 1_000_000

    /// Minimum time between two key frames that this viewer alone requests; doubled each time up to
    /// `longestBeginning`.
    private static let shortestBeginning = Duration.milliseconds(700)
    private static let longestBeginning = Duration.seconds(8)
    /// After this long without a request, the minimum time is short again.
    private static let forgiveness = Duration.seconds(20)

    private var beginnings: (last: MonotonicTime, pause: Duration)?
    private var last: (start: Int64, source: ObjectIdentifier, at: MonotonicTime)?
    /// Bytes sent since the last replay began.
    private var spent = 0
    /// Number of successive replays from the same key frame.
    private var tries = 0

    /// Whether a new key frame is probably needed, because two replays from this one did not help.
    var isInVain: Bool { tries > 2 }

    /// Whether the last replay may still be on its way to the viewer.
    /// - Parameter rtt: round-trip time; nil if unknown.
    func isUnderWay(rtt: Duration?, at now: MonotonicTime) -> Bool {
        guard let last else { return false }
        return now < last.at + max(rtt ?? .zero, Self.minimumInterval)
    }

    /// Whether the group that begins with `start` may be replayed now; if so, it is counted.
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

    /// Whether a key frame may be requested although one is cached; if so, it is counted.
    ///
    /// The limit keeps a viewer who requests one for every picture from making the publisher send only key frames.
    mutating func mayBeginAnew(at now: MonotonicTime) -> Bool {
        guard let (last, pause) = beginnings, now < last + Self.forgiveness else {
            beginnings = (now, Self.shortestBeginning)
            return true
        }
        guard now >= last + pause else { return false }
        beginnings = (now, min(pause * 2, Self.longestBeginning))
        return true
    }

    /// Records bytes of a replay that were sent.
    mutating func spend(_ bytes: Int) {
        spent &+= bytes
    }
}
