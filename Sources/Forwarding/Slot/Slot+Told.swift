import Peer
import Wire

/// Feedback on packets by their RTP sequence numbers (RFC 8888).
extension Slot {
    /// Looks up the packets in a report on one of the m-line's two streams.
    ///
    /// Numbers that were never sent, or too long ago, are ignored, and so are packets that arrived at an unknown
    /// time.
    /// - Parameters:
    ///   - time: the report's time, in units of 1/65,536 s of the client's clock.
    ///   - told: the results are appended to it, up to `SentPackets.maximumCapacity` of them.
    func lookUp(
        _ stream: CongestionControlFeedback.Stream, toldAt time: Int64, into told: inout [SentPackets.Told]
    ) {
        let isRepair = stream.ssrc != plan.ssrc
        guard plan.reportsBySequenceNumber, let numbers = isRepair ? repairNumbers : repeatable else {
            return
        }
        let next = isRepair ? repairIndex : timeline.nextSequence
        var number = stream.firstSequenceNumber
        for metric in stream.metrics {
            defer { number &+= 1 }
            // The latest packet sent under this 16-bit number; the next index itself has not been sent yet.
            let back = Int64(UInt16(truncatingIfNeeded: next) &- number)
            guard told.count < SentPackets.maximumCapacity,
                let place = numbers.number(of: next &- (back == 0 ? 1 << 16 : back))
            else { continue }
            let arrival = ReceiverClock.arrival(metric, toldAt: time)
            guard arrival != nil || !metric.hasArrived else { continue }
            told.append(.init(place: place, arrival: arrival))
        }
    }
}
