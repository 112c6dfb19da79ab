import Base
import Peer

/// Tells when it is to be measured what the latest key frame costs.
///
/// At once, and again when it does not count as bit rate itself any more.
struct KeyFrameCost {
    /// Its size, and when its last packet came; nil once it has been measured by itself.
    private var latest: (bytes: Int, end: MonotonicTime)?

    /// - Parameter ended: bytes of a key frame whose last packet has just come; nil for any other packet.
    /// - Returns: the size that is to be measured by the bit rate of now; nil if there is none.
    mutating func note(_ ended: Int?, at now: MonotonicTime) -> Int? {
        if let ended { latest = (ended, now) }
        guard let cost = latest else { return nil }
        let isAlone = now > cost.end + RateMeter.window
        guard ended != nil || isAlone else { return nil }
        if isAlone { latest = nil }
        return cost.bytes
    }
}
