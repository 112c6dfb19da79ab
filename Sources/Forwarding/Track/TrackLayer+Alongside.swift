import Base
import Peer

/// Sending of several layers to the same viewers: other layers' packets follow directly behind this one's.
extension TrackLayer {
    /// Another layer that is about to be sent to the same viewer; nil if there is none.
    func companion(of slot: Slot) -> TrackLayer? {
        slot.session.slots.lazy.compactMap(\.current).first { $0 !== self && !$0.outgoing.leaving.isEmpty }
    }

    /// Sends a viewer the outgoing packets of other layers, directly behind this one's.
    /// - Returns: number of packets sent.
    func sendCompany(
        of slot: Slot, round: UInt64, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) -> Int {
        var sent = 0
        let others = slot.session.slots
        var index = 0
        while index < others.count {
            let other = others[index]
            index += 1
            guard other.round != round, !other.isStopped, let layer = other.current,
                !layer.outgoing.leaving.isEmpty
            else { continue }
            other.round = round
            let leaving = layer.outgoing.leaving
            other.send(
                leaving.span, of: layer, keyFrame: layer.outgoing.leavingKeyFrame,
                from: layer.history.storage.span, at: now, into: &sink)
            sent += leaving.count
        }
        return sent
    }
}
