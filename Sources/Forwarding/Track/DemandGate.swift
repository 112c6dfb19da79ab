import Base
import Peer

/// Lets demands of key frames on to who can ask for one, and the same not too often.
struct DemandGate {
    /// Between two demands for the same reason, in nanoseconds.
    private static let interval: Int64 = 50_000_000

    /// What last went on; nil before the first.
    private var last: (reason: KeyFrameRequester.Reason, at: MonotonicTime)?

    /// - Returns: whether the demand is to go on; a weightier reason than the last one always is.
    mutating func admit(_ reason: KeyFrameRequester.Reason, at now: MonotonicTime) -> Bool {
        if let last, reason <= last.reason, now.nanoseconds(since: last.at) < Self.interval { return false }
        last = (reason, now)
        return true
    }

    /// Who asks from now on came too late for the key frame that has just come, however soon it is.
    mutating func noteKeyFrame() {
        last = nil
    }
}
