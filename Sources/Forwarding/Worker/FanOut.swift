import Base
import Peer

/// Forwards received packets, several packets of a track together.
///
/// A layer's packets wait here until the batch of datagrams with which they arrived is done. While the worker is busy
/// they wait until their frame is complete, or a few milliseconds have passed. Then each viewer is served once for
/// all of them: its state is loaded once, and its packets leave as one message (UDP_SEGMENT), which costs the kernel
/// little more than a single packet. So the cost of a packet falls as the load grows. An idle worker never waits.
final class FanOut {
    /// Layers with waiting packets.
    private var layers: [TrackLayer] = []
    /// The layers that are being sent now, by kind.
    private var video: [TrackLayer] = []
    private var audio: [TrackLayer] = []
    private var patience = Patience()
    private var round: UInt64 = 0
    /// How long the first of the packets sent together had waited, counted once per packet sent.
    private(set) var waits = DurationHistogram(.packets)
    /// When `sendDue` should run next; nil if no packets wait.
    private(set) var deadline: MonotonicTime?

    /// Adds a layer that has begun to have waiting packets.
    func add(_ layer: TrackLayer) {
        layers.append(layer)
    }

    /// The number of a new round, in which each slot is served at most once.
    func nextRound() -> UInt64 {
        round &+= 1
        return round
    }

    /// Sends the packets that are due.
    ///
    /// Audio is sent together with video of the same source, directly behind it, so that its smaller packets can end
    /// a viewer's message.
    func sendDue(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard !layers.isEmpty else { return }
        let longestWait = patience.longestWait(at: now)
        for layer in layers where layer.outgoing.isDue(after: longestWait, at: now) { begin(layer) }
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
        deadline = layers.lazy.map { $0.outgoing.dueTime(after: longestWait) }.min()
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
        waits.add(now.nanoseconds(since: layer.outgoing.waitingSince), times: UInt64(max(sent, 0)))
        return sent
    }
}
