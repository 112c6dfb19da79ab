import Base
import Peer

/// What control has to know of what a session sends: which of its sources are alive, how loud it is, and whether much
/// of it gets lost on the way.
///
/// Sums up on the worker, so that control hears ten times a second of a voice and not at all of silence.
struct SourceMonitor {
    enum Notice: Equatable {
        case changed(source: Int, isActive: Bool)
        /// 0 is silence, 127 the loudest; holds until the next.
        case voice(UInt8)
        /// Much of what was sent in the last `lossWindow` did not come; repeated as long as that goes on.
        case weakUplink
    }

    /// Between two notices of a voice.
    static let interval = Duration.milliseconds(100)
    /// A source without packets for as long is not alive; a still picture sends more often.
    static let silence = Duration.seconds(2)
    /// A microphone that sends nothing for as long is silent.
    static let pause = Duration.milliseconds(300)

    /// Losses are summed up so long, or twice as long where few packets come.
    static let lossWindow = Duration.seconds(5)
    /// Of all packets, before any repair, one of so many: speech begins to suffer.
    static let lossShare = 20
    /// So many show a share of losses; less than half of them show nothing.
    static let tellingPackets = 200

    /// -dBov of a quiet voice.
    static let unknownLevel: UInt8 = 42

    private var lastArrival: [MonotonicTime?]
    private var sum = 0
    private var count = 0
    private var toldLevel: UInt8 = 0
    private var lastLevel = MonotonicTime.zero
    private var nextVoice = MonotonicTime.zero
    private var expected = 0
    private var lost = 0
    private var lossesSince: MonotonicTime?
    private var notices: [Notice] = []

    init(sources: Int) {
        lastArrival = Array(repeating: nil, count: sources)
    }

    /// Hot path: notes a packet of a source.
    ///
    /// - Parameter level: -dBov of RFC 6464, 0 to 127; nil for what is not audio or does not say.
    mutating func note(source: Int, level: UInt8?, at now: MonotonicTime) {
        guard lastArrival.indices.contains(source) else { return }
        if lastArrival[source] == nil { notices.append(.changed(source: source, isActive: true)) }
        lastArrival[source] = now
        guard let level else { return }
        lastLevel = now
        sum += 127 - Int(level & 0x7F)
        count += 1
        guard now >= nextVoice else { return }
        nextVoice = now + Self.interval
        let mean = UInt8(clamping: sum / count)
        (sum, count) = (0, 0)
        tell(mean)
    }

    private mutating func tell(_ level: UInt8) {
        guard level != toldLevel else { return }
        toldLevel = level
        notices.append(.voice(level))
    }

    /// Notes what was lost since the last call; of all sources, in any order.
    mutating func note(_ loss: ReceiveStream.LossInterval, at now: MonotonicTime) {
        let since = lossesSince ?? now
        lossesSince = since
        // By the client's own sequence numbers: who makes wild ones up is shown as weak, or not.
        expected &+= loss.expected
        lost &+= loss.lost
        guard now >= since + (expected < Self.tellingPackets ? Self.lossWindow * 2 : Self.lossWindow) else {
            return
        }
        if expected >= Self.tellingPackets / 2, lost >= max(expected / Self.lossShare, 1) {
            notices.append(.weakUplink)
        }
        (expected, lost, lossesSince) = (0, 0, now)
    }

    /// When `advance` has something to do.
    var deadline: MonotonicTime {
        var earliest = toldLevel > 0 ? lastLevel + Self.pause : .distantFuture
        for case let last? in lastArrival { earliest = min(earliest, last + Self.silence) }
        return earliest
    }

    mutating func advance(to now: MonotonicTime) {
        if toldLevel > 0, now >= lastLevel + Self.pause { tell(0) }
        for index in lastArrival.indices {
            guard let last = lastArrival[index], now >= last + Self.silence else { continue }
            lastArrival[index] = nil
            notices.append(.changed(source: index, isActive: false))
        }
    }

    var hasNotices: Bool { !notices.isEmpty }

    mutating func takeNotices() -> [Notice] {
        defer { notices.removeAll(keepingCapacity: true) }
        return notices
    }
}
