import Base
import Peer
import Wire

extension Session {
    /// When `sendControl` has to run next; never before the session is connected.
    var controlDeadline: MonotonicTime {
        guard connection.state == .connected else { return .distantFuture }
        var earliest = min(scheduler.deadline, feedback?.deadline ?? .distantFuture)
        earliest = min(earliest, estimator?.deadline ?? .distantFuture)
        earliest = min(earliest, monitor?.deadline ?? .distantFuture)
        earliest = min(earliest, delivery.deadline ?? .distantFuture)
        earliest = min(earliest, path?.deadline ?? .distantFuture)
        for source in sources {
            for layer in source.track.layers { earliest = min(earliest, layer.feedbackDeadline) }
        }
        for slot in slots { earliest = min(earliest, slot.replay?.deadline ?? .distantFuture) }
        return observesLoss ? min(earliest, nextLossLook) : earliest
    }

    /// Performs everything that is due: replays, probes, feedback and reports.
    func sendControl(
        clock: WallClock, using random: inout some RandomNumberGenerator, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard connection.state == .connected else { return }
        for slot in slots where slot.isReplaying { slot.advanceReplay(at: now, into: &sink) }
        advanceDelivery(at: now)
        advancePath(at: now, into: &sink)
        observeLoss(at: now)
        let packets = feedbackDue(at: now)
        if !packets.isEmpty {
            for bytes in packer.feedback(packets) { connection.sendControl(bytes, into: &sink) }
        }
        guard scheduler.isDue(at: now, using: &random) else { return }
        let datagrams = packer.reports(
            senders: slots.compactMap { $0.stream.senderReport(at: now, clock: clock) },
            receptions: receptions(at: now),
            extended: exchange.blocks(at: now, clock: clock, asks: !sources.isEmpty))
        for bytes in datagrams { connection.sendControl(bytes, into: &sink) }
    }

    private func receptions(at now: MonotonicTime) -> [ReportBlock] {
        sources.flatMap { source in source.track.layers.compactMap { $0.reportBlock(at: now) } }
    }

    /// NACK, PLI, FIR, transport-wide feedback and REMB on what the client publishes.
    private func feedbackDue(at now: MonotonicTime) -> [RTCPPacket] {
        guard !sources.isEmpty else { return [] }
        var packets: [RTCPPacket] = []
        for source in sources {
            for layer in source.track.layers {
                let occasion = layer.appendFeedback(
                    from: reportSSRC, rtt: roundTrip.smoothed, at: now, to: &packets)
                if let occasion { noteKeyFrameRequest(occasion, of: layer, mid: source.plan.mid) }
            }
        }
        if let due = feedback?.feedbackDue(at: now) { packets += due.map { .transportFeedback($0) } }
        if let bitrate = estimator?.estimateDue(at: now) {
            packets.append(
                .receiverEstimatedMaximumBitrate(
                    ReceiverEstimatedMaximumBitrate(
                        senderSSRC: reportSSRC, bitrate: UInt64(clamping: bitrate), ssrcs: routes.media)))
        }
        return packets
    }

    /// Whether loss of the client's media is evaluated: for congestion control, or for control.
    private var observesLoss: Bool { !sources.isEmpty && (estimator != nil || monitor != nil) }

    /// Passes the latest loss of the client's media to the bandwidth estimate and to the monitor.
    private func observeLoss(at now: MonotonicTime) {
        guard observesLoss, now >= nextLossLook else { return }
        nextLossLook = now + (estimator == nil ? .seconds(1) : .milliseconds(250))
        for layer in sources.flatMap(\.track.layers) {
            guard let loss = layer.takeLoss() else { continue }
            estimator?.observe(loss, at: now)
            monitor?.note(loss, at: now)
        }
    }
}
