import Peer
import Wire

/// What a client tells of packets by their own sequence numbers (RFC 8888).
extension Slot {
    /// Looks up what is told of one of the two streams of the m-line.
    ///
    /// Numbers that were never sent, or too long ago, tell nothing, nor does a packet that came nobody knows when.
    /// - Parameters:
    ///   - time: the report's, in units of 1/65,536 s of the client's clock.
    ///   - told: gets no longer than what is remembered of packets that were sent.
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
            // The latest that has left under it: the next one has not.
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
