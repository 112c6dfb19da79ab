/// Finds the first complete key frame of a video stream: what a joining viewer sees first.
///
/// Accepts packets in any order, and uses only sequence numbers and frame boundaries, so that it works with any codec.
struct FirstFrame {
    /// Packets remembered of one frame; a longer frame never counts as complete, and the next key frame is awaited.
    private static let limit = 4_096
    /// Packets remembered that may belong to a key frame whose first packet is still to come.
    private static let earlyLimit = 512

    /// Of the key frame that is being collected; nil before the first.
    private var timestamp: UInt32?
    /// Number of its first packet.
    private var start: Int64 = 0
    /// Number of its last packet; nil until the one with the marker bit has come.
    private var end: Int64?
    private var seen: Set<Int64> = []
    /// Packets of no known key frame, by number: its first packet may come later, or need repair.
    private var early: [Int64: (timestamp: UInt32, marker: Bool)] = [:]

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
            takeEarly()
        } else if startsKeyFrame, index < start {
            // With H.264, several packets of a frame may be reported as its start.
            start = index
            takeEarly()
        }
        guard timestamp == self.timestamp, index >= start else {
            if early.count >= Self.earlyLimit { early.removeAll(keepingCapacity: true) }
            early[index] = (timestamp, marker)
            return false
        }
        guard seen.count < Self.limit else { return false }
        seen.insert(index)
        if marker { end = index }
        guard let end else { return false }
        return seen.count == Int(end - start) + 1
    }

    /// Counts the packets of the key frame that came before its first one.
    private mutating func takeEarly() {
        for (index, packet) in early where packet.timestamp == timestamp && index >= start {
            seen.insert(index)
            if packet.marker { end = index }
        }
    }
}
