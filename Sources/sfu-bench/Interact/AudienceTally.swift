import Base
import Net
import Synchronization

/// What one viewer heard while all of it went on.
struct Hearing: Equatable, Sendable {
    /// As they were told last.
    var hearts = 0
    /// Comments that they were told, and how many more they were told that there were.
    var told = 0
    var more = 0
    /// The number of the latest gift.
    var lastGift = 0
    /// Gifts that came twice, or out of order, or that left out some before.
    var wrongGifts = 0
    /// They read too slowly and were given everything anew: what was told meanwhile they have missed.
    var fellBehind = false

    /// Takes in what a message says.
    mutating func take(_ message: AudienceMessage) {
        switch message.type {
        case "interaction":
            told += message.comments?.count ?? 0
            more += message.more ?? 0
            if let heart = message.reactions?["heart"] { hearts = heart.total }
            for gift in message.gifts ?? [] {
                if gift.number != lastGift + 1 { wrongGifts += 1 }
                lastGift = gift.number
            }
        case "snapshot", "interaction-snapshot": fellBehind = true
        default: break
        }
    }
}

/// What the threads of a run have seen, and what they sent.
struct AudienceTally: Sendable {
    var sockets = SocketNews()
    /// Taps in messages that left.
    var hearts = 0
    /// Comments that left, those that their authors were told are durable, and how long that took.
    var comments = 0
    var accepted = 0
    var answered = LogHistogram()
    /// From a gift's first byte until the kernel had it for a viewer.
    var gifts = LogHistogram()
    /// From a comment's first byte until a viewer had read it, and until the kernel had it for them.
    var seen = LogHistogram()
    var arrived = LogHistogram()
    /// What it then waited until it was read: the tool's own part.
    var waited = LogHistogram()
    /// What was refused, by rule.
    var refused: [String: Int] = [:]
    /// Messages that could not be understood.
    var unknown = 0

    mutating func merge(_ other: AudienceTally) {
        sockets.merge(other.sockets)
        hearts += other.hearts
        comments += other.comments
        accepted += other.accepted
        if !other.answered.isEmpty { answered.add(other.answered) }
        if !other.gifts.isEmpty { gifts.add(other.gifts) }
        if !other.seen.isEmpty { seen.add(other.seen) }
        if !other.arrived.isEmpty { arrived.add(other.arrived) }
        if !other.waited.isEmpty { waited.add(other.waited) }
        refused.merge(other.refused, uniquingKeysWith: +)
        unknown += other.unknown
    }
}

/// What an audience does now.
enum AudienceMood: Int, AtomicRepresentable, Sendable {
    /// They come, and what they are told then is not counted.
    case arriving
    /// They watch, and say nothing.
    case quiet
    case busy
    /// They say nothing more, and hear what is left.
    case listening
}

/// What the threads of a run and the one who reports share.
final class AudienceShared: Sendable {
    let mood = Atomic(AudienceMood.arriving)
    let isStopped = Atomic(false)
    let tally = Mutex(AudienceTally())
    /// What a shop and voters did.
    let asked = Mutex(AskTally())
    /// Of each thread, what its viewers heard, as of a moment ago.
    let hearings: Mutex<[[Hearing]]>

    init(threads: Int) {
        hearings = Mutex(Array(repeating: [], count: threads))
    }
}

/// How many of something are due that comes so often.
struct Cadence {
    /// A second.
    let rate: Double
    private var since: MonotonicTime?
    private var done = 0

    init(rate: Double) {
        self.rate = rate
    }

    /// Counted from the first time that this is asked.
    /// - Returns: those that became due since it was asked the last time.
    mutating func due(at now: MonotonicTime) -> Int {
        let since = since ?? now
        self.since = since
        let all = Int(Double(now.nanoseconds(since: since)) / 1e9 * rate)
        defer { done = max(all, done) }
        return max(all - done, 0)
    }
}
