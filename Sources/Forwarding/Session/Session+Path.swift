import Base
import Peer
import Wire

/// Sends what the path to the client takes: what it tells of each packet decides on layers, and on probes for more.
extension Session {
    /// Percent that headers of all protocols add to the payload of media.
    private static let headers = 5
    /// Share of a picture's bit rate that its lowest temporal layer takes, in percent: of two layers about so much.
    private static let thinnedShare = 60

    /// Until the client tells of the first packets: 8 Mbit/s, in bytes a second.
    private static let firstReplayRate = 1_000_000
    /// Percent of the rate at which bursts come that may be filled.
    private static let burstShare = 85

    func receive(_ feedback: TransportFeedback, at now: MonotonicTime) {
        guard let path else { return }
        let outcomes = path.packets.outcomes(of: feedback, at: now)
        guard !outcomes.isEmpty else { return }
        path.receive(outcomes, roundTrip: roundTrip.smoothed, at: now)
        noteSoundLoss(outcomes, at: now)
        allocate(at: now)
        tellQuality(at: now)
        requestWake()
    }

    private func noteSoundLoss(_ outcomes: [PacketOutcome], at now: MonotonicTime) {
        guard slots.contains(where: { $0.redundancy != nil }) else { return }
        var told = 0
        var lost = 0
        for outcome in outcomes where !outcome.isLate {
            told += 1
            if outcome.arrival == nil { lost += 1 }
        }
        for slot in slots { slot.noteLoss(lost, of: told, at: now) }
    }

    /// Does what is due: nothing may have been told for long, or a probe has to leave.
    func advancePath(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard let path, path.deadline <= now else { return }
        if let due = path.estimator.deadline, due <= now, path.isKnown {
            path.estimator.advance(to: now)
            allocate(at: now)
        }
        if path.probe == nil, let probe = path.estimator.probeDue(at: now) {
            path.probe = ProbeRun(probe, at: now)
        }
        sendProbe(over: path, at: now, into: &sink)
    }

    private func sendProbe(
        over path: OutgoingPath, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard var run = path.probe else { return }
        guard let slot = slots.first(where: \.canProbe) else { return path.probe = nil }
        var due = run.bytesDue(at: now)
        while due > 0 {
            let length = slot.sendProbePacket(run.packets, of: run.probe.number, at: now, into: &sink)
            guard length > 0 else { return path.probe = nil }
            run.note(length)
            due -= length
            counters.probeBytes &+= UInt64(length)
        }
        path.probe = run.isOver ? nil : run
    }

    /// In bytes a second, what the past may be shown with; nil where that is found out by what is lost.
    var replayPace: Int? {
        guard path != nil else { return nil }
        return knownReplayRate ?? Self.firstReplayRate
    }

    /// The same, once the client has told of any packet; nil before.
    var knownReplayRate: Int? {
        guard let path, path.isKnown else { return nil }
        guard !path.estimator.isOverused else { return 0 }
        let burst = (path.estimator.burstRate ?? 0) / 100 * Self.burstShare
        return max(burst, path.estimator.bitrate) / 8
    }

    /// Divides what the path takes between the slots.
    func allocate(at now: MonotonicTime) {
        guard let path, path.isKnown else { return }
        var sound = 0
        var asking: [(slot: Slot, grants: [Slot.Grant])] = []
        var wishes: [LayerAllocator.Wish] = []
        for slot in slots {
            guard let track = slot.track else { continue }
            guard slot.plan.kind == .video else {
                let copies = 1 + (slot.redundancy?.depth ?? 0)
                sound += track.layers.first.map { Self.withHeaders($0.bitrate(at: now)) * copies } ?? 0
                continue
            }
            guard !preferences.isAudioOnly else { continue }
            let isPreview = seats.contains { $0.isPreview && $0.video === slot }
            let (grants, steps) = choices(of: slot, track, at: now)
            guard !steps.isEmpty else { continue }
            // What is not to be had any more counts as the least.
            let known = slot.grant == .best ? steps.count - 1 : grants.firstIndex(of: slot.grant)
            let granted = slot.grant == .nothing ? nil : known ?? 0
            asking.append((slot, grants))
            wishes.append(
                LayerAllocator.Wish(
                    steps: steps, granted: granted, isLast: isPreview, isNew: slot.isNewcomer))
            slot.isNewcomer = false
        }
        // The queue of a TCP connection leaves out whole pictures by itself.
        path.allocator.mayStop = connection.remoteAddress?.transport != .tcp
        let grants = path.allocator.allocate(
            wishes, available: max(path.available - sound, 0),
            isLimited: path.estimator.cause != .application || path.isLossy,
            isOverused: isPathFull, at: now)
        for (index, asked) in asking.enumerated() {
            let isBest = grants[index] == asked.grants.count - 1
            let new = isBest ? .best : grants[index].map { asked.grants[$0] } ?? .nothing
            if !wishes[index].isNew { count(grants[index], after: wishes[index].granted) }
            guard asked.slot.grant != new else { continue }
            asked.slot.grant = new
            asked.slot.track?.retarget(asked.slot, at: now)
        }
        path.estimator.want(path.allocator.wanted.map { $0 + sound }, at: now)
    }

    private func count(_ step: Int?, after before: Int?) {
        if (step ?? -1) > (before ?? -1) { counters.stepsUp &+= 1 }
        guard (step ?? -1) < (before ?? -1) else { return }
        counters.stepsDown &+= 1
        if step == nil { counters.picturesStopped &+= 1 }
    }

    /// What could be sent in a slot, the best last, and what it costs.
    private func choices(
        of slot: Slot, _ track: Track, at now: MonotonicTime
    ) -> (grants: [Slot.Grant], steps: [Int]) {
        let layers = track.choices(for: slot, at: now)
        var grants = layers.map { Slot.Grant.layer($0.index) }
        var steps = layers.map { Self.withHeaders($0.bitrate(at: now)) }
        if layers.count == 1, layers[0].isOnly, layers[0].tellsWhereToSwitch(at: now), !slot.isThinned,
            preferences.pin != .high
        {
            grants.insert(.thinned, at: 0)
            steps.insert(steps[0] * Self.thinnedShare / 100, at: 0)
        }
        // A larger picture may for once take less: what it will take is what counts.
        for index in steps.indices.dropFirst() { steps[index] = max(steps[index], steps[index - 1]) }
        return (grants, steps)
    }

    private static func withHeaders(_ bitrate: Int) -> Int { bitrate + bitrate * headers / 100 }
}
