import Base
import Peer
import Wire

/// Sends less to a viewer whose reports tell that much is lost. Sound goes first.
extension Session {
    /// What a burst loses is told within this time: a second at least of the past, the queue that it filled, a report.
    private static let burst = Duration.seconds(3)

    /// Takes in what a report told of everything that the client gets.
    func noteLoss(_ told: LossResponse.Interval, at now: MonotonicTime) {
        guard told.expected > 0 else { return }
        var interval = told
        interval.hasBurst = lastReception < excused
        lastReception = now
        let before = delivery.sendsPictures
        delivery.receive(interval, at: now)
        if delivery.sendsPictures != before { aimPictures(at: now) }
    }

    /// Tries pictures again when it is time.
    func advanceDelivery(at now: MonotonicTime) {
        guard let due = delivery.deadline, due <= now else { return }
        let before = delivery.sendsPictures
        let isWaiting = slots.contains { $0.plan.kind == .video && $0.awaited != nil }
        delivery.advance(to: now, isWaiting: isWaiting)
        if delivery.sendsPictures != before { aimPictures(at: now) }
    }

    /// Whether a slot may be shown the past: always what it was not sent before, unless pictures are tried again.
    func mayReplay(isBeginning: Bool) -> Bool {
        delivery.mayReplay || isBeginning && !delivery.isTrying
    }

    /// A slot begins with a burst, which may lose packets on a link that takes the stream.
    func noteBeginning(at now: MonotonicTime) {
        excused = now + Self.burst
    }

    private func aimPictures(at now: MonotonicTime) {
        for slot in slots where slot.plan.kind == .video { slot.track?.retarget(slot, at: now) }
        requestWake()
    }
}
