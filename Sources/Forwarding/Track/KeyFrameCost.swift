import Base
import Peer

/// Decides when the cost of the latest key frame is measured.
///
/// It is measured immediately, and again when the key frame is no longer part of the bit rate it is compared with.
struct KeyFrameCost {
    /// Size in bytes, and the arrival of its last packet; nil once the final measurement was made.
    private var latest: (bytes: Int, end: MonotonicTime)?

    /// Processes any packet.
    /// - Parameter ended: size in bytes of a key frame that has just ended; nil for any other packet.
    /// - Returns: the size to compare with the present bit rate; nil if nothing is to be measured.
    mutating func note(_ ended: Int?, at now: MonotonicTime) -> Int? {
        if let ended { latest = (ended, now) }
        guard let cost = latest else { return nil }
        let isAlone = now > cost.end + RateMeter.window
        guard ended != nil || isAlone else { return nil }
        if isAlone { latest = nil }
        return cost.bytes
    }
}
