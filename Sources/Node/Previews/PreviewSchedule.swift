import Base
import Forwarding

/// Decides when a preview of each stream is made, and when its publisher is asked for a key frame.
///
/// Pure. A stream's first preview is made as soon as it is live. Later ones are made at most every `interval`, of key
/// frames that arrive anyway. Where none arrive, the publisher is asked, at most every `askInterval`. The previews of
/// many streams are spread evenly over the interval.
struct PreviewSchedule {
    typealias Source = ProgrammeSource

    /// A publisher's track, which can be asked for a key frame.
    private struct Sender: Hashable {
        let session: SessionID?
        let mid: String
        let track: TrackKey?

        init(_ source: Source) {
            (session, mid) = (source.session, source.mid)
            // With a session, its m-line identifies the sender, whether the source also has a track key or not.
            track = source.session == nil ? source.track?.key : nil
        }
    }

    /// What the desk has to do.
    enum Order: Equatable {
        /// Capture the next key frame after `mark`; `mayAsk` allows to request it from the publisher.
        case open(StreamID, Source, after: TapMark?, mayAsk: Bool)
        /// A tap that waits for a key frame may request it now.
        case ask(TapID, worker: Int)
        /// Close a tap: the picture has another source now, or none.
        case close(TapID, worker: Int)
    }

    /// What happens for a stream: nothing, a tap that waits for a key frame, or a job.
    private enum Phase: Equatable {
        case idle
        case waiting(TapID)
        case making
    }

    private struct Entry {
        var source: Source
        var phase = Phase.idle
        var due: MonotonicTime
        /// The key frame of the latest preview of this source.
        var mark: TapMark?
        /// Whether no preview of this source was made yet; the first one does not wait for its turn.
        var isFirst: Bool { mark == nil }
    }

    /// The shortest time between two previews of a stream.
    static let interval = Duration.seconds(5)
    /// The shortest time between two requests for a key frame to one publisher.
    static let askInterval = Duration.seconds(10)
    /// Previews that are made at the same time, at most; further ones wait.
    static let makingLimit = 32

    /// The rate of previews, relative to the rate that is needed, so that delays can be made up for.
    private static let surplus = 1.25
    /// Previews that may begin at the same moment with few streams.
    private static let burst = 4.0

    private var entries: [StreamID: Entry] = [:]
    /// When publishers were last asked; only times that still matter.
    private var asked: [Sender: MonotonicTime] = [:]
    /// Previews that may begin now: a token bucket.
    private var turns = burst
    private var turnsSince: MonotonicTime?

    /// Previews that are being made.
    private var makingCount: Int { entries.values.count { $0.phase == .making } }

    /// Sets the source of a stream's picture; nil for none.
    mutating func setSource(_ source: Source?, of stream: StreamID, at now: MonotonicTime) -> [Order] {
        guard source != entries[stream]?.source else { return [] }
        // `asked` keeps its entry, so a publisher who comes back is not asked any sooner.
        let old = entries.removeValue(forKey: stream)
        if let source { entries[stream] = Entry(source: source, due: now) }
        guard let old, case .waiting(let tap) = old.phase else { return [] }
        return [.close(tap, worker: old.source.worker)]
    }

    /// Returns what is due.
    ///
    /// The caller must report each `open` by `began`.
    mutating func orders(at now: MonotonicTime) -> [Order] {
        var orders: [Order] = []
        var free = Self.makingLimit - makingCount
        asked = asked.filter { now < $0.value + Self.askInterval }
        refill(at: now)
        for (stream, entry) in overdueFirst {
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

    /// All entries, the longest overdue first; equal ones by name, so that the order does not depend on hashing.
    private var overdueFirst: [(key: StreamID, value: Entry)] {
        entries.sorted { left, right in
            guard left.value.due == right.value.due else { return left.value.due < right.value.due }
            return left.key.description < right.key.description
        }
    }

    /// Adds the turns since the last call, so that each stream has one in an interval.
    private mutating func refill(at now: MonotonicTime) {
        let rate = Double(entries.count) * Self.surplus / Double(Self.interval.wholeNanoseconds)
        let passed = turnsSince.map { max(now.nanoseconds(since: $0), 0) } ?? 0
        turnsSince = now
        turns = min(turns + Double(passed) * rate, max(Self.burst, rate * 1e9))
    }

    /// Notes the tap that was opened for an `open` order.
    mutating func began(_ tap: TapID, of stream: StreamID) {
        entries[stream]?.phase = .waiting(tap)
    }

    /// A tap has captured a key frame.
    /// - Returns: whether to make a preview of it; false for a tap that is no longer expected.
    mutating func captured(_ tap: TapID, of stream: StreamID, _ mark: TapMark, at now: MonotonicTime) -> Bool
    {
        guard entries[stream]?.phase == .waiting(tap) else { return false }
        entries[stream]?.phase = .making
        entries[stream]?.mark = mark
        entries[stream]?.due = now + Self.interval
        return true
    }

    /// A tap has ended without a key frame; the stream is tried again after `interval`.
    mutating func missed(_ tap: TapID, of stream: StreamID, at now: MonotonicTime) {
        guard entries[stream]?.phase == .waiting(tap) else { return }
        entries[stream]?.phase = .idle
        entries[stream]?.due = now + Self.interval
    }

    /// A preview was made, or could not be made.
    mutating func made(of stream: StreamID) {
        guard entries[stream]?.phase == .making else { return }
        entries[stream]?.phase = .idle
    }
}
