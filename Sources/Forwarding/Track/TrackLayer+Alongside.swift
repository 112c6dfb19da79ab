import Base
import Peer

/// What leaves of other layers for the same viewers, right behind this one's.
extension TrackLayer {
    /// A layer of another track that is about to be sent to the same viewer.
    func companion(of slot: Slot) -> TrackLayer? {
        slot.session.slots.lazy.compactMap(\.current).first { $0 !== self && !$0.outgoing.leaving.isEmpty }
    }

    /// Sends a viewer what leaves of other layers, right behind this one's.
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
