import Base
import Peer
import Wire

/// Replays: sends the receiver the cached group of pictures, from its key frame to the live edge.
///
/// The packets come from the track's history and are sent like any other packet, so that a NACK finds them there.
/// Packets that arrive meanwhile are in the history too, and follow in their turn.
extension Slot {
    /// Whether cached pictures, or a key frame that is being spread, are being sent.
    var isReplaying: Bool { replay != nil }

    /// Answers a receiver that needs a key frame, because it cannot go on or begin.
    ///
    /// The cache answers if it can; otherwise the publisher is asked.
    func demandKeyFrame(at now: MonotonicTime) {
        guard let layer = awaited ?? (isStopped ? nil : current) else { return }
        // A replay on its way may be the answer, unless so much of it was lost that no decoder can begin with it.
        if awaited == nil {
            guard replay?.hasCrawled ?? true,
                !replayGate.isUnderWay(rtt: session.roundTrip.smoothed, at: now)
            else { return }
        }
        guard !layer.replay(to: self, at: now) || replayGate.isInVain else { return }
        // The cached group does not help a viewer who would take too long to reach the live edge, or whose path is
        // full.
        if !isReplaying, session.isPathFull || layer.isTooFarBack(for: self, at: now),
            replayGate.mayBeginAnew(at: now)
        {
            return layer.demandKeyFrame(.beginning, at: now)
        }
        layer.demandKeyFrame(at: now)
    }

    /// Changes to `layer`, beginning with `packet` from its history.
    ///
    /// - Returns: whether the change was made. It is refused if the receiver did not negotiate the codec, if it got
    ///   the same replay just now, or if it loses too much. A replay that is under way may always move to a later key
    ///   frame.
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
        // Sender reports refer to the live edge from the beginning, because replayed media has no real capture time.
        if let segment = timeline.current {
            stream.begin(
                timestamp: segment.outgoing(timestamp: edge.timestamp, of: edge.sequenceNumber),
                captured: edge.captured ?? edge.arrival, at: now)
        }
        return true
    }

    /// Sends as much of the replay as is allowed now.
    func advanceReplay(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard let due = replay?.deadline, due <= now, let layer = current else { return }
        // Packets that wait to be sent to all viewers must not be sent to this one twice.
        layer.sendWaiting(at: now, into: &sink)
        // A new key frame has arrived meanwhile, so the rest before it need not be shown.
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
        // The rest is no longer in the history; a later key frame has to do.
        case .gone: if !layer.replay(to: self, at: now) { layer.abandonReplay(to: self, at: now) }
        }
    }

    /// Follows the path's capacity; if that is too low to reach the live edge soon, requests a key frame to end the
    /// replay.
    private func pace(of layer: TrackLayer, at now: MonotonicTime) {
        guard let pace = session.replayPace, let next = replay?.next else { return }
        replay?.go(at: pace)
        guard session.knownReplayRate != nil, replay?.isLive == false, replay?.isTimeToLook(at: now) == true,
            !layer.mayCatchUp(self, from: next, at: now), replayGate.mayBeginAnew(at: now)
        else { return }
        layer.demandKeyFrame(.beginning, at: now)
    }

    private enum ReplayOutcome { case goesOn, caughtUp, gone }

    /// Appends the packets that may be sent now.
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
                // It has not arrived yet; it is sent when it does, like any late packet.
                if layer.cachedStart == replay?.start { continue }
                return .gone
            }
            packet.captured = replay?.time(of: packet.timestamp)
            packet.arrival = now
            packets.append(packet)
            replay?.isBetweenFrames = packet.marker
            // A dropped packet uses nothing of the path.
            guard timeline.current?.sieve?.takes(packet) ?? true else { continue }
            replay?.spend(range.count)
            replayGate.spend(range.count)
        }
        return .goesOn
    }

    /// Ends the replay at the live edge; a spread key frame was live all the time.
    private func catchUp() {
        let wasLive = replay?.isLive ?? true
        replay = nil
        if !wasLive { timeline.catchUp() }
    }

    /// Whether neither this packet nor any behind it has been sent, because none may be sent twice.
    private func isAhead(_ sequence: Int64) -> Bool {
        guard let segment = timeline.current, let place = segment.outgoing(sequence) else { return false }
        guard let sieve = segment.sieve else { return place >= timeline.nextSequence }
        guard let omissions = sieve.omissions(before: sequence) else { return false }
        return place &- omissions.packets >= timeline.nextSequence
    }

    /// Spreads a key frame over time at the path's capacity, if that is known to be low.
    ///
    /// Later packets wait for their turn, so that none of them meets a full queue.
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
