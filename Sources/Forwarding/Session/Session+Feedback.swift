import Base
import Peer
import Wire

extension Session {
    /// Processes one SRTCP datagram: the client's reports on what it sends and receives.
    func receiveControl(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, clock: WallClock,
        at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) -> Bool {
        do {
            let length = try connection.unprotectControl(&datagram, from: source, at: now)
            for packet in try RTCPPacket.parseCompound(datagram.span.extracting(0..<length)) {
                take(packet, clock: clock, at: now, into: &sink)
            }
            return true
        } catch {
            noteRefusal(error)
            return error is WireError
        }
    }

    /// Processes a packet from an address that is not known to be this session's.
    ///
    /// A report is acted on. A media packet is lost: by the time the next ones arrive, the address is known.
    /// - Returns: false if the packet is not from this session's client; it is unchanged then.
    func receiveMoved(
        _ datagram: inout MutableSpan<UInt8>, _ kind: DatagramKind, clock: WallClock, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) -> Bool {
        guard let length = connection.unprotectStray(&datagram, kind) else { return false }
        guard kind == .rtcp,
            let packets = try? RTCPPacket.parseCompound(datagram.span.extracting(0..<length))
        else { return true }
        for packet in packets { take(packet, clock: clock, at: now, into: &sink) }
        return true
    }

    private func take(
        _ packet: RTCPPacket, clock: WallClock, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        switch packet {
        case .senderReport(let report):
            take(report, at: now)
            take(report.reports, clock: clock, at: now)
        case .receiverReport(let report):
            take(report.reports, clock: clock, at: now)
        case .nack(let nack):
            slot(ssrc: nack.mediaSSRC)?.resend(nack.lost, rtt: answerTime, at: now, into: &sink)
        case .pictureLossIndication(let indication):
            slot(ssrc: indication.mediaSSRC)?.demandKeyFrame(at: now)
        case .fullIntraRequest(let request):
            for entry in request.entries { slot(ssrc: entry.ssrc)?.demandKeyFrame(at: now) }
        case .extendedReport(let report):
            for sample in exchange.receive(report, at: now, clock: clock) { roundTrip.add(sample) }
        case .transportFeedback(let feedback): receive(feedback, at: now, into: &sink)
        case .congestionControlFeedback(let feedback): receive(feedback, at: now, into: &sink)
        case .receiverEstimatedMaximumBitrate(let estimate): receive(estimate, at: now)
        case .sourceDescription, .bye, .unknown:
            // BYE is ignored: Chromium sends it when it renegotiates, and goes on with the same SSRC.
            break
        }
    }

    /// Learns the publisher's clock, for lip sync.
    private func take(_ report: SenderReport, at now: MonotonicTime) {
        guard let route = routes[report.ssrc], route.kind == .media,
            route.layer.receiveSenderReport(report, at: now)
        else { return }
        publisherClock.observe(ntp: report.ntpTime, at: now)
        // With one track on the publisher's clock and another on the server's, audio and video would be out of sync.
        isPublisherClockKnown = sources.allSatisfy { source in
            source.track.layers.allSatisfy { $0.ssrc == nil || $0.hasSenderReport }
        }
    }

    /// Processes the client's reports on the streams that it receives.
    private func take(_ blocks: [ReportBlock], clock: WallClock, at now: MonotonicTime) {
        leaveStreamIfOver(at: now)
        var told = LossResponse.Interval()
        for block in blocks {
            guard let slot = slot(ssrc: block.ssrc) else { continue }
            slot.noteReport()
            let before = slot.stream.reception
            if let sample = slot.stream.receive(block, at: now, clock: clock) { roundTrip.add(sample) }
            guard let before, let reception = slot.stream.reception else { continue }
            let interval = reception.interval(since: before).without(slot.departed, through: reception)
            told.add(interval)
            // Feedback on each packet contains more, and arrives sooner.
            if path?.tellsOfLoss != true { slot.noteLoss(interval.lost, of: interval.expected, at: now) }
        }
        noteLoss(told, at: now)
        tellQuality(at: now)
    }

    /// The slot that sends media or retransmissions with this SSRC; nil if there is none.
    func slot(ssrc: UInt32) -> Slot? {
        slots.first { $0.plan.ssrc == ssrc || $0.plan.repairSSRC == ssrc }
    }
}
