import Base
import Peer

/// Limits how often demands for key frames are passed on to the track's owner.
struct DemandGate {
    /// Minimum time between two demands for the same reason, in nanoseconds.
    private static let interval: Int64 = 50_000_000

    /// The latest demand that was passed on; nil before the first, and after a key frame.
    private var last: (reason: KeyFrameRequester.Reason, at: MonotonicTime)?

    /// Decides on a demand.
    /// - Returns: whether to pass it on; a more urgent reason than the last one always is.
    mutating func admit(_ reason: KeyFrameRequester.Reason, at now: MonotonicTime) -> Bool {
        if let last, reason <= last.reason, now.nanoseconds(since: last.at) < Self.interval { return false }
        last = (reason, now)
        return true
    }

    /// Notes that a key frame arrived; later demands need another one, however soon they come.
    mutating func noteKeyFrame() {
        last = nil
    }
}
