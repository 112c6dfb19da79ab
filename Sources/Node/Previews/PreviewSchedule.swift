import Base
import Forwarding

/// When a preview of which stream is made, and when its publisher is asked for a key frame.
///
/// Pure. A stream's first preview is made as soon as it is live, further ones at most every `interval`, of key frames
/// that come anyway; where none come, the publisher is asked, at most every `askInterval`. Many streams take turns:
/// what is made of them all is spread over the interval.
struct PreviewSchedule {
    typealias Source = ProgrammeSource

    /// Who can be asked for a key frame.
    private struct Sender: Hashable {
        let session: SessionID?
        let mid: String
        let track: TrackKey?

        init(_ source: Source) {
            (session, mid) = (source.session, source.mid)
            // A session's m-line is the same whichever way it is found.
            track = source.session == nil ? source.track?.key : nil
        }
    }

    enum Order: Equatable {
        /// Take the next key frame.
        case open(StreamID, Source, after: TapMark?, mayAsk: Bool)
        /// The tap that waits for one may ask for it now.
        case ask(TapID, worker: Int)
        /// The picture comes from elsewhere now, or from nowhere.
        case close(TapID, worker: Int)
    }

    private enum Phase: Equatable {
        case idle
        case waiting(TapID)
        case making
    }

    private struct Entry {
        var source: Source
        var phase = Phase.idle
        var due: MonotonicTime
        var mark: TapMark?
        /// Whether it was ever made of this source.
        var isFirst: Bool { mark == nil }
    }

    static let interval = Duration.seconds(5)
    static let askInterval = Duration.seconds(10)
    /// Previews that are made at the same time; further ones wait their turn.
    static let makingLimit = 32

    /// So many more than needed may begin in a time: nothing falls behind.
    private static let surplus = 1.25
    /// So many may begin at once where there are few streams.
    private static let burst = 4.0

    private var entries: [StreamID: Entry] = [:]
    /// When senders were asked, as long as that matters.
    private var asked: [Sender: MonotonicTime] = [:]
    /// How many may begin now.
    private var turns = burst
    private var turnsSince: MonotonicTime?

    /// How many are being made.
    private var makingCount: Int { entries.values.count { $0.phase == .making } }

    /// Says where a stream's picture comes from now; nil for nowhere.
    mutating func setSource(_ source: Source?, of stream: StreamID, at now: MonotonicTime) -> [Order] {
        guard source != entries[stream]?.source else { return [] }
        // Who was asked a moment ago, and comes back, is not asked any sooner.
        let old = entries.removeValue(forKey: stream)
        if let source { entries[stream] = Entry(source: source, due: now) }
        guard let old, case .waiting(let tap) = old.phase else { return [] }
        return [.close(tap, worker: old.source.worker)]
    }

    /// What is to be done now; `began` has to follow each `open`.
    mutating func orders(at now: MonotonicTime) -> [Order] {
        var orders: [Order] = []
        var free = Self.makingLimit - makingCount
        asked = asked.filter { now < $0.value + Self.askInterval }
        refill(at: now)
        for (stream, entry) in entries.sorted(by: { $0.value.due < $1.value.due }) {
            let sender = Sender(entry.source)
            let mayAsk = asked[sender] == nil
            switch entry.phase {
            case .idle where now >= entry.due && free > 0 && (entry.isFirst || turns >= 1):
                free -= 1
                if !entry.isFirst { turns -= 1 }
                orders.append(.open(stream, entry.source, after: entry.mark, mayAsk: mayAsk))
                if mayAsk { asked[sender] = now }
            case .waiting(let tap) where mayAsk:
                orders.append(.ask(tap, worker: entry.source.worker))
                asked[sender] = now
            default: break
            }
        }
        return orders
    }

    /// Every stream has its turn once in an interval.
    private mutating func refill(at now: MonotonicTime) {
        let rate = Double(entries.count) * Self.surplus / Double(Self.interval.wholeNanoseconds)
        let passed = turnsSince.map { max(now.nanoseconds(since: $0), 0) } ?? 0
        turnsSince = now
        turns = min(turns + Double(passed) * rate, max(Self.burst, rate * 1e9))
    }

    mutating func began(_ tap: TapID, of stream: StreamID) {
        entries[stream]?.phase = .waiting(tap)
    }

    /// The key frame is there.
    /// - Returns: whether a preview is to be made of it.
    mutating func captured(_ tap: TapID, of stream: StreamID, _ mark: TapMark, at now: MonotonicTime) -> Bool
    {
        guard entries[stream]?.phase == .waiting(tap) else { return false }
        entries[stream]?.phase = .making
        entries[stream]?.mark = mark
        entries[stream]?.due = now + Self.interval
        return true
    }

    /// The tap ended without a key frame.
    mutating func missed(_ tap: TapID, of stream: StreamID, at now: MonotonicTime) {
        guard entries[stream]?.phase == .waiting(tap) else { return }
        entries[stream]?.phase = .idle
        entries[stream]?.due = now + Self.interval
    }

    /// A preview was made, or could not be.
    mutating func made(of stream: StreamID) {
        guard entries[stream]?.phase == .making else { return }
        entries[stream]?.phase = .idle
    }
}
