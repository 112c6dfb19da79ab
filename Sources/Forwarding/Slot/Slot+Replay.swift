import Base
import Peer
import Wire

/// Shows the receiver the past: the cached group of pictures, from its key frame to the live edge.
///
/// What is sent this way comes out of the track's history and leaves like any other packet, so that a NACK finds it
/// there. Packets that arrive meanwhile are in the history, too, and follow in their turn.
extension Slot {
    var isReplaying: Bool { replay != nil }

    /// The receiver cannot go on, or cannot begin.
    ///
    /// The cache answers if it can; the publisher is asked if it cannot.
    func demandKeyFrame(at now: MonotonicTime) {
        guard let layer = awaited ?? (isStopped ? nil : current) else { return }
        // What is on its way may be what is asked for, unless so much of it was lost that nothing can begin with it.
        if awaited == nil {
            guard replay?.hasCrawled ?? true,
                !replayGate.isUnderWay(rtt: session.roundTrip.smoothed, at: now)
            else { return }
        }
        guard !layer.replay(to: self, at: now) || replayGate.isInVain else { return }
        // The cached group does not help whom it would take too long to reach the present, or whose path is full.
        if !isReplaying, session.isPathFull || layer.isTooFarBack(for: self, at: now),
            replayGate.mayBeginAnew(at: now)
        {
            return layer.demandKeyFrame(.beginning, at: now)
        }
        layer.demandKeyFrame(at: now)
    }

    /// Changes to `layer`, beginning with `packet` out of its past.
    ///
    /// - Returns: whether the change was made; not if the receiver cannot take the codec, or had this just now, or if
    ///   much of what it is sent is lost and it would be shown the same again. A replay that is under way may always
    ///   change to a later key frame.
    func beginReplay(
        of layer: TrackLayer, with packet: ForwardedPacket, to edge: GOPCache.Edge, at now: MonotonicTime
    ) -> Bool {
        let overtaken = current === layer ? replay : nil
        let isBeginning = current !== layer
        let isLater = overtaken.map { $0.start != packet.sequenceNumber } ?? false
        guard plan.format(for: packet.codec) != nil,
            isLater
                || session.mayReplay(isBeginning: isBeginning)
                    && replayGate.admit(
                        packet.sequenceNumber, of: ObjectIdentifier(layer), rtt: session.roundTrip.smoothed,
                        at: now),
            begin(layer, with: packet, upTo: edge, at: now)
        else { return false }
        replay = Replay(
            from: packet.sequenceNumber, to: edge, bitrate: layer.bitrate(for: self, at: now),
            pace: session.knownReplayRate, at: now)
        if let overtaken { replay?.inherit(overtaken) }
        counters.replays &+= 1
        if isBeginning { session.noteBeginning(at: now) }
        // Reports speak of the live edge from the beginning on: what is replayed has no time of its own.
        if let segment = timeline.current {
            stream.begin(
                timestamp: segment.outgoing(timestamp: edge.timestamp, of: edge.sequenceNumber),
                captured: edge.captured ?? edge.arrival, at: now)
        }
        return true
    }

    /// Sends as much of the past as may leave now.
    func advanceReplay(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard let due = replay?.deadline, due <= now, let layer = current else { return }
        // What waits to be sent to others must not be sent to this one twice.
        layer.sendWaiting(at: now, into: &sink)
        // A key frame came meanwhile: the rest of what was before it need not be seen.
        if let start = layer.cachedStart, start != replay?.start, replay?.isBetweenFrames == true {
            _ = layer.replay(to: self, at: now)
        }
        pace(of: layer, at: now)
        replay?.refill(at: now)
        var packets: [ForwardedPacket] = []
        let outcome = collectReplay(from: layer, into: &packets, at: now)
        layer.noteReplay(at: now)
        let storage = layer.history.storage
        transmit(packets.span, from: storage.span, before: .max, at: now, into: &sink)
        switch outcome {
        case .goesOn: break
        case .caughtUp: catchUp()
        // The rest is gone; a later key frame will do.
        case .gone: if !layer.replay(to: self, at: now) { layer.abandonReplay(to: self, at: now) }
        }
    }

    /// Goes on at what the path takes; where that is too little to reach the present soon, a key frame shall end it.
    private func pace(of layer: TrackLayer, at now: MonotonicTime) {
        guard let pace = session.replayPace, let next = replay?.next else { return }
        replay?.go(at: pace)
        guard session.knownReplayRate != nil, replay?.isLive == false, replay?.isTimeToLook(at: now) == true,
            !layer.mayCatchUp(self, from: next, at: now), replayGate.mayBeginAnew(at: now)
        else { return }
        layer.demandKeyFrame(.beginning, at: now)
    }

    private enum ReplayOutcome { case goesOn, caughtUp, gone }

    /// Appends the packets that may leave now.
    private func collectReplay(
        from layer: TrackLayer, into packets: inout [ForwardedPacket], at now: MonotonicTime
    ) -> ReplayOutcome {
        while let next = replay?.next, replay?.mayGoOn == true {
            guard let newest = layer.history.newest, next <= newest else {
                return replay?.waitsForMore(at: now) == true ? .goesOn : .caughtUp
            }
            replay?.next = next &+ 1
            guard let range = layer.history.range(of: next),
                var packet = layer.packet(at: range, sequenceNumber: next)
            else {
                // Not there yet: it is sent when it comes, like any packet that comes late.
                if layer.cachedStart == replay?.start { continue }
                return .gone
            }
            packet.captured = replay?.time(of: packet.timestamp)
            packet.arrival = now
            packets.append(packet)
            replay?.isBetweenFrames = packet.marker
            // What is left out takes nothing of the path.
            guard timeline.current?.sieve?.takes(packet) ?? true else { continue }
            replay?.spend(range.count)
            replayGate.spend(range.count)
        }
        return .goesOn
    }

    private func catchUp() {
        let wasLive = replay?.isLive ?? true
        replay = nil
        if !wasLive { timeline.catchUp() }
    }

    /// Whether neither a packet nor any behind it was sent yet: none may be sent twice.
    private func isAhead(_ sequence: Int64) -> Bool {
        guard let segment = timeline.current, let place = segment.outgoing(sequence) else { return false }
        guard let sieve = segment.sieve else { return place >= timeline.nextSequence }
        guard let omissions = sieve.omissions(before: sequence) else { return false }
        return place &- omissions.packets >= timeline.nextSequence
    }

    /// Has a key frame leave at what the path takes, where that is known to be little.
    ///
    /// What comes behind it waits for its turn, so that nothing of it finds a full queue.
    func spread(from packet: ForwardedPacket, of layer: TrackLayer, at now: MonotonicTime) {
        guard replay == nil, let pace = session.knownReplayRate, pace < Replay.usualRate,
            isAhead(packet.sequenceNumber)
        else { return }
        let limit = layer.rendition == .stills ? RenditionLayer.stillsPace : .max
        replay = Replay(
            spreading: packet, bitrate: layer.bitrate(for: self, at: now), at: pace, upTo: limit, now: now)
        session.requestWake()
    }

    func endReplay() {
        replay = nil
    }
}
