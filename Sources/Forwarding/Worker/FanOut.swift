import Base
import Peer

/// Sends on what came in, several packets of a track at once.
///
/// A layer's packets wait here until the batch of datagrams they came with is done, and while the worker is busy
/// until their frame is complete or a few milliseconds have passed. Then each viewer is served once for all of them:
/// its state is touched once, and its packets leave as one message (UDP_SEGMENT), which costs the kernel little
/// more than a single packet. So the cost of a packet falls as the load grows. An idle worker never waits.
final class FanOut {
    /// Layers with packets that wait.
    private var layers: [TrackLayer] = []
    /// What is being sent right now.
    private var video: [TrackLayer] = []
    private var audio: [TrackLayer] = []
    private var patience = Patience()
    private var round: UInt64 = 0
    /// How long the first packet of what was sent together had waited, for each packet sent.
    private(set) var waits = DurationHistogram(.packets)
    /// When `sendDue` wants to be called; nil if nothing waits.
    private(set) var deadline: MonotonicTime?

    /// Takes in a layer whose first packet began to wait.
    func add(_ layer: TrackLayer) {
        layers.append(layer)
    }

    /// Numbers a turn in which each slot is served once.
    func nextRound() -> UInt64 {
        round &+= 1
        return round
    }

    /// Sends what need not wait longer.
    ///
    /// Audio goes along with the video of its source, right behind it, so that its smaller packets can end a
    /// viewer's message.
    func sendDue(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard !layers.isEmpty else { return }
        let longestWait = patience.longestWait(at: now)
        for layer in layers where layer.isDue(after: longestWait, at: now) { begin(layer) }
        if !video.isEmpty { for layer in layers where !layer.isVideo { begin(layer) } }
        let round = nextRound()
        var sent = 0
        for layer in video { sent += send(layer, hasCompany: !audio.isEmpty, round, at: now, into: &sink) }
        for layer in audio { sent += send(layer, hasCompany: false, round, at: now, into: &sink) }
        for layer in video { layer.endSending() }
        for layer in audio { layer.endSending() }
        video.removeAll(keepingCapacity: true)
        audio.removeAll(keepingCapacity: true)
        patience.add(sent, at: now)
        layers.removeAll { !$0.stayListed() }
        deadline = layers.lazy.map { $0.waitingSince.advanced(byNanoseconds: longestWait) }.min()
    }

    private func begin(_ layer: TrackLayer) {
        guard layer.beginSending() else { return }
        if layer.isVideo { video.append(layer) } else { audio.append(layer) }
    }

    private func send(
        _ layer: TrackLayer, hasCompany: Bool, _ round: UInt64, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) -> Int {
        let sent = layer.send(hasCompany: hasCompany, round: round, at: now, into: &sink)
        waits.add(now.nanoseconds(since: layer.waitingSince), times: UInt64(max(sent, 0)))
        return sent
    }
}

/// How long packets may wait for others, by how much a worker has sent lately.
///
/// Browsers send a frame in bursts 5 ms apart: who waits a little longer than that sends two bursts at once.
struct Patience {
    /// In nanoseconds.
    static let longest: Int64 = 5_300_000
    /// Packets a second that leave a worker idle: some five hundredths of a processor.
    static let idleRate = 15_000
    /// Packets a second from which on waiting is worth all of `longest`.
    static let busyRate = 45_000

    /// A window is 2^26 ns long: two frames.
    private static let windowShift: Int64 = 26
    private var window: Int64 = 0
    private var count = 0
    /// Packets in a window, as of the last one that is over; half of it is history.
    private var average = 0

    mutating func add(_ packets: Int, at now: MonotonicTime) {
        advance(to: now)
        count += packets
    }

    /// In nanoseconds; 0 while the worker is idle.
    mutating func longestWait(at now: MonotonicTime) -> Int64 {
        advance(to: now)
        let rate = average * 1_000_000_000 >> Self.windowShift
        let share = Int64(min(max(rate - Self.idleRate, 0), Self.busyRate - Self.idleRate))
        return Self.longest * share / Int64(Self.busyRate - Self.idleRate)
    }

    private mutating func advance(to now: MonotonicTime) {
        let current = now.nanoseconds >> Self.windowShift
        guard current != window else { return }
        average = current == window + 1 ? (average + count) / 2 : 0
        window = current
        count = 0
    }
}
