/// Finds the first complete key frame of a video stream: what a joining viewer sees first.
///
/// Accepts packets in any order, and uses only sequence numbers and frame boundaries, so that it works with any codec.
struct FirstFrame {
    /// Packets remembered of one frame; a longer frame never counts as complete, and the next key frame is awaited.
    private static let limit = 4_096

    /// Of the key frame that is being collected; nil before the first.
    private var timestamp: UInt32?
    /// Number of its first packet.
    private var start: Int64 = 0
    /// Number of its last packet; nil until the one with the marker bit has come.
    private var end: Int64?
    private var seen: Set<Int64> = []

    /// - Parameters:
    ///   - index: the packet's number, unwrapped.
    ///   - timestamp: in ticks of the RTP clock; the same for all packets of a frame.
    ///   - marker: whether it is the last packet of its frame.
    ///   - startsKeyFrame: whether it is the first packet of a key frame.
    /// - Returns: whether the key frame is complete now.
    mutating func receive(index: Int64, timestamp: UInt32, marker: Bool, startsKeyFrame: Bool) -> Bool {
        if startsKeyFrame, self.timestamp != timestamp {
            // A newer key frame replaces an incomplete one.
            guard self.timestamp == nil || index > start else { return false }
            self.timestamp = timestamp
            start = index
            end = nil
            seen.removeAll(keepingCapacity: true)
        } else if startsKeyFrame {
            // With H.264, several packets of a frame may be reported as its start.
            start = min(start, index)
        }
        guard timestamp == self.timestamp, index >= start, seen.count < Self.limit else { return false }
        seen.insert(index)
        if marker { end = index }
        guard let end else { return false }
        return seen.count == Int(end - start) + 1
    }
}
