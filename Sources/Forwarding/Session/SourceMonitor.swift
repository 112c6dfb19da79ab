import Base
import Peer

/// Watches what a session sends, for control: which sources are active, how loud it is, and whether much is lost.
///
/// It aggregates on the worker, so that control gets ten notices a second of a voice and none of silence.
struct SourceMonitor {
    enum Notice: Equatable {
        case changed(source: Int, isActive: Bool)
        /// The loudness from now on, from 0 for silence to 127.
        case voice(UInt8)
        /// Much of what was sent in the last `lossWindow` was lost; repeated while that goes on.
        case weakUplink
    }

    /// Minimum time between two notices of a voice.
    static let interval = Duration.milliseconds(100)
    /// Time without packets after which a source is inactive; even a still picture sends more often.
    static let silence = Duration.seconds(2)
    /// Time without packets after which a microphone is silent.
    static let pause = Duration.milliseconds(300)

    /// Time over which losses are summed; twice as long if few packets arrive.
    static let lossWindow = Duration.seconds(5)
    /// One lost packet in this many, before retransmission, counts as weak: speech begins to suffer.
    static let lossShare = 20
    /// Number of packets that gives a reliable share of losses; with less than half of them nothing is reported.
    static let tellingPackets = 200

    /// Level of a source that sends no level: a quiet voice, in -dBov.
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

    /// - Parameter level: -dBov of RFC 6464, 0 to 127; nil for video, and for audio without a level.
    mutating func note(source: Int, level: UInt8?, at now: MonotonicTime) {
        guard lastArrival.indices.contains(source) else { return }
        if lastArrival[source] == nil { notices.append(.changed(source: source, isActive: true)) }
        lastArrival[source] = now
        guard let level else { return }
        // What was heard before a pause is not part of what comes after it.
        if now >= lastLevel + Self.pause { (sum, count) = (0, 0) }
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

    /// Adds the loss since the last call, of any source.
    mutating func note(_ loss: ReceiveStream.LossInterval, at now: MonotonicTime) {
        let since = lossesSince ?? now
        lossesSince = since
        // Sequence numbers are the client's own, so a client that invents them only affects the notice about itself.
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

    /// When `advance` has to run next.
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
