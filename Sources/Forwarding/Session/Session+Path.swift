import Base
import Peer
import Wire

/// Adapts what is sent to the path's capacity.
///
/// Feedback on each packet, the client's estimate (REMB), or the progress of its TCP connection decides on layers,
/// and on probes for more.
extension Session {
    /// Rate for cached pictures until the path has been measured: 8 Mbit/s, in bytes a second.
    private static let firstReplayRate = 1_000_000
    /// Percentage of the burst rate that may be used.
    private static let burstShare = 85

    /// Processes transport-wide feedback on packets.
    func receive(
        _ feedback: TransportFeedback, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        leaveStreamIfOver(at: now)
        guard let path else { return }
        take(path.packets.outcomes(of: feedback, at: now), of: path, at: now, into: &sink)
    }

    /// Processes feedback on packets by their RTP sequence numbers (RFC 8888).
    func receive(
        _ feedback: CongestionControlFeedback, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        leaveStreamIfOver(at: now)
        guard let path, plan.slots.contains(where: \.reportsBySequenceNumber) else { return }
        let time = path.receiverClock.time(of: feedback)
        var told: [SentPackets.Told] = []
        for stream in feedback.streams { slot(ssrc: stream.ssrc)?.lookUp(stream, toldAt: time, into: &told) }
        take(path.packets.outcomes(of: told, at: now), of: path, at: now, into: &sink)
    }

    private func take(
        _ outcomes: [PacketOutcome], of path: OutgoingPath, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !outcomes.isEmpty else { return }
        path.receive(outcomes, roundTrip: roundTrip.smoothed, at: now)
        noteSoundLoss(outcomes, at: now)
        allocate(at: now)
        resendSound(outcomes, at: now, into: &sink)
        tellQuality(at: now)
        requestWake()
    }

    /// Processes the estimate of a client by UDP that sends no feedback on each packet.
    func receive(_ estimate: ReceiverEstimatedMaximumBitrate, at now: MonotonicTime) {
        leaveStreamIfOver(at: now)
        guard connection.state == .connected, connection.remoteAddress?.transport != .tcp,
            !plan.slots.contains(where: \.tellsOfPackets),
            let stream = slots.firstIndex(where: { slot in
                estimate.ssrcs.isEmpty || estimate.ssrcs.contains(slot.plan.ssrc)
            })
        else { return }
        let path = path ?? OutgoingPath()
        self.path = path
        let before = sendsPictures
        let isNews = path.receive(
            estimate.bitrate, of: stream, sent: picturesSent, roundTrip: roundTrip.smoothed, at: now)
        guard isNews else { return }
        allocate(at: now)
        if sendsPictures != before { aimPictures(at: now) }
        tellQuality(at: now)
        requestWake()
    }

    /// Bytes sent in video and in probes.
    var picturesSent: UInt64 {
        slots.reduce(counters.probeBytes) {
            $1.plan.kind == .video ? $0 &+ $1.counters.bytesSent : $0
        }
    }

    /// Processes the progress of the client's TCP connection.
    func receive(_ backlog: StreamBacklog, at now: MonotonicTime) {
        guard connection.state == .connected, !slots.isEmpty else { return }
        let path = path ?? OutgoingPath()
        self.path = path
        path.receive(backlog, from: connection.remoteAddress, at: now)
        allocate(at: now)
        tellQuality(at: now)
        requestWake()
    }

    /// Forgets the estimate from a TCP connection once the client has changed to UDP, because it does not apply
    /// there.
    func leaveStreamIfOver(at now: MonotonicTime) {
        guard let path, path.backlog != nil, connection.remoteAddress?.transport != .tcp else { return }
        path.leaveStream()
        guard !path.isKnown else { return }
        for slot in slots where slot.plan.kind == .video && slot.grant != .best {
            slot.grant = .best
            slot.track?.retarget(slot, at: now)
        }
    }

    /// Lets slots adapt the redundancy of audio to the loss of packets.
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

    /// Sends sound again that was lost and may still be heard.
    ///
    /// Later than pictures were lowered, so that it need not share the path with what the path does not take.
    private func resendSound(
        _ outcomes: [PacketOutcome], at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        let missed = outcomes.lazy.filter { outcome in
            outcome.arrival == nil && now < outcome.sent + Slot.longestSilence
        }
        guard !missed.isEmpty || slots.contains(where: { !$0.lostSound.isEmpty }) else { return }
        let numbers = Set(missed.map(\.number))
        let newest = outcomes.last { $0.arrival != nil }?.number
        for slot in slots where slot.plan.kind == .audio {
            slot.resendLost(numbers, newest: newest, rtt: answerTime, at: now, into: &sink)
        }
    }

    /// Performs what is due: time without feedback, or the next step of a probe.
    func advancePath(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard let path, path.deadline <= now else { return }
        if path.advance(to: now) { allocate(at: now) }
        path.beginProbe(at: now)
        sendProbe(over: path, at: now, into: &sink)
    }

    private func sendProbe(
        over path: OutgoingPath, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard var run = path.probe else { return }
        guard let slot = slots.first(where: \.canProbe) else { return path.giveUpProbe(at: now) }
        var due = run.bytesDue(at: now)
        while due > 0 {
            let length = slot.sendProbePacket(run.packets, of: run.probe.number, at: now, into: &sink)
            guard length > 0 else { return path.giveUpProbe(at: now) }
            run.note(length)
            due -= length
            counters.probeBytes &+= UInt64(length)
        }
        path.probe = run.isOver ? nil : run
    }

    /// Rate for sending cached pictures, in bytes a second; nil where the loss of those pictures decides.
    var replayPace: Int? {
        guard path != nil else { return nil }
        return knownReplayRate ?? Self.firstReplayRate
    }

    /// The same, from measurements alone; nil before the first one, and 0 while the path's queue grows.
    var knownReplayRate: Int? {
        guard let path, path.isKnown else { return nil }
        guard !path.isOverused else { return 0 }
        let burst = (path.burstRate ?? 0) / 100 * Self.burstShare
        // A receiver's estimate is bounded by what it was sent; if nothing else limits it, the path may carry more.
        let least = path.isReported && path.cause == .application ? Self.firstReplayRate : 0
        return max(max(burst, path.bitrate) / 8, least)
    }

    /// Divides the path's capacity between the slots.
    func allocate(at now: MonotonicTime) {
        guard let path, path.isKnown else { return }
        var sound = 0
        var asking: [(slot: Slot, choices: PictureChoices)] = []
        var wishes: [LayerAllocator.Wish] = []
        // A rendition takes so much less that the path's queue drains without a further reduction.
        var mayFallFar = false
        for slot in slotsByImportance {
            guard let track = slot.track else { continue }
            guard slot.plan.kind == .video else {
                let copies = 1 + (slot.redundancy?.depth ?? 0)
                sound +=
                    track.layers.first.map { PictureChoices.withHeaders($0.bitrate(at: now)) * copies } ?? 0
                continue
            }
            guard !preferences.isAudioOnly else { continue }
            let isPreview = seats.contains { $0.isPreview && $0.video === slot }
            let choices = PictureChoices(of: slot, track, at: now)
            guard !choices.steps.isEmpty else { continue }
            if choices.hasRenditions, !slot.hasRenditions {
                // Earlier failures and losses were of larger pictures, and do not apply to renditions.
                path.allocator.release()
                if !choices.isOwn(slot.grant) { path.forgetLoss(at: now) }
            }
            let isFar = !slot.hasRenditions || choices.isOwn(slot.grant)
            mayFallFar = mayFallFar || choices.hasRenditions && isFar
            slot.hasRenditions = choices.hasRenditions
            asking.append((slot, choices))
            wishes.append(
                LayerAllocator.Wish(
                    steps: choices.steps, granted: choices.index(of: slot.grant), isLast: isPreview,
                    isNew: slot.isNewcomer, isWaiting: slot.awaited != nil || slot.isWaitingForKeyFrame))
            slot.isNewcomer = false
        }
        let room = max((mayFallFar ? path.bitrate : path.available) - sound, 0)
        let isLimited = path.cause != .application || path.isLossy
        let grants = path.allocator.allocate(
            wishes, available: room, isLimited: isLimited, isOverused: isPathFull, isLossy: path.isLossy,
            losesSome: path.losesSome, burstRate: path.burstRate, at: now)
        for (index, asked) in asking.enumerated() {
            let choices = asked.choices
            let isBest = grants[index].map { $0 >= choices.own && $0 == choices.grants.count - 1 } ?? false
            let new = isBest ? .best : grants[index].map { choices.grants[$0] } ?? .nothing
            if !wishes[index].isNew { count(grants[index], after: wishes[index].granted) }
            if !wishes[index].isLast, choices.needRendition(at: grants[index], in: isLimited ? room : nil) {
                asked.slot.track?.needRendition(for: asked.slot, at: now)
            }
            guard asked.slot.grant != new else { continue }
            if mayFallFar, !choices.isOwn(new) { path.forgetLoss(at: now) }
            asked.slot.grant = new
            asked.slot.track?.retarget(asked.slot, at: now)
        }
        path.want(path.allocator.wanted.map { $0 + sound }, at: now)
    }

    /// Gives the pictures of these m-lines priority over all others.
    func favour(_ mids: [String], at now: MonotonicTime) {
        let isFavoured: (Slot) -> Bool = { mids.contains($0.plan.mid) }
        slotsByImportance = slots.filter(isFavoured) + slots.filter { !isFavoured($0) }
        allocate(at: now)
        requestWake()
    }

    /// Counts a step up or down.
    private func count(_ step: Int?, after before: Int?) {
        if (step ?? -1) > (before ?? -1) { counters.stepsUp &+= 1 }
        guard (step ?? -1) < (before ?? -1) else { return }
        counters.stepsDown &+= 1
        if step == nil { counters.picturesStopped &+= 1 }
    }
}
