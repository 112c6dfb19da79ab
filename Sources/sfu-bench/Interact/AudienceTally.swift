import Base
import Net
import Synchronization

/// What one viewer received since all had arrived.
struct Hearing: Equatable, Sendable {
    /// The sum of taps that was last reported to the viewer.
    var hearts = 0
    /// Comments that were received, and comments that the server reported as left out.
    var told = 0
    var more = 0
    /// Number of the latest gift.
    var lastGift = 0
    /// Gifts that were repeated, out of order, or after a gap.
    var wrongGifts = 0
    /// Whether the viewer read too slowly and got a snapshot: messages before that were lost.
    var fellBehind = false

    /// Counts a message.
    mutating func take(_ message: AudienceMessage) {
        switch message.type {
        case "interaction":
            told += message.comments?.count ?? 0
            // Numbers of a server that is wrong may be of any size; they fail the run, and must not end it.
            more &+= message.more ?? 0
            if let heart = message.reactions?["heart"] { hearts = heart.total }
            for gift in message.gifts ?? [] {
                if gift.number != lastGift &+ 1 { wrongGifts += 1 }
                lastGift = gift.number
            }
        case "snapshot", "interaction-snapshot": fellBehind = true
        default: break
        }
    }
}

/// What all threads of a run have received and sent.
struct AudienceTally: Sendable {
    var sockets = SocketNews()
    /// Taps in messages that were sent.
    var hearts = 0
    /// Comments that were sent, comments that were acknowledged as durable, and nanoseconds until then.
    var comments = 0
    var accepted = 0
    var answered = LogHistogram()
    /// Nanoseconds from a gift's first byte until the kernel had it for a viewer.
    var gifts = LogHistogram()
    /// Nanoseconds from a comment's first byte until a viewer had read it, and until the kernel had it for the viewer.
    var seen = LogHistogram()
    var arrived = LogHistogram()
    /// Nanoseconds that it then waited to be read, which is this tool's own time.
    var waited = LogHistogram()
    /// Refused comments and taps, by rule.
    var refused: [String: Int] = [:]
    /// Messages that could not be parsed.
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

/// What the audience is doing; the run sets it, and the threads follow.
enum AudienceMood: Int, AtomicRepresentable, Sendable {
    /// Viewers connect; messages are not counted yet.
    case arriving
    /// Viewers only watch.
    case quiet
    /// Viewers comment, tap and vote, and the shop sells.
    case busy
    /// Viewers send nothing more, and receive what is left.
    case listening
}

/// State that the threads of a run share with the task that controls it.
final class AudienceShared: Sendable {
    let mood = Atomic(AudienceMood.arriving)
    let isStopped = Atomic(false)
    let tally = Mutex(AudienceTally())
    /// Results of the shop's and the voters' requests.
    let asked = Mutex(AskTally())
    /// By thread, what its viewers have received, up to a fifth of a second ago.
    let hearings: Mutex<[[Hearing]]>

    init(threads: Int) {
        hearings = Mutex(Array(repeating: [], count: threads))
    }
}

/// Computes how many events of a steady rate are due.
struct Cadence {
    /// Events a second.
    let rate: Double
    private var since: MonotonicTime?
    /// Events that were returned as due so far.
    private var done = 0

    init(rate: Double) {
        self.rate = rate
    }

    /// Time counts from the first call.
    /// - Returns: how many events have become due since the previous call.
    mutating func due(at now: MonotonicTime) -> Int {
        let since = since ?? now
        self.since = since
        // Multiplied first: a quotient such as 0.57 is not exact, and cut off would be one event too few.
        let all = Int(Double(now.nanoseconds(since: since)) * rate / 1e9)
        defer { done = max(all, done) }
        return max(all - done, 0)
    }
}
