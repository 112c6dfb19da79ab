/// Finds the first complete key frame of a video stream: what a joining viewer sees first.
///
/// Takes every packet in, in any order, and knows only sequence numbers and frame boundaries, so that it works for any
/// codec.
struct FirstFrame {
    /// Packets of one frame that are remembered; longer frames end late rather than never.
    private static let limit = 4_096

    private var timestamp: UInt32?
    private var start: Int64 = 0
    private var end: Int64?
    private var seen: Set<Int64> = []

    /// - Parameters:
    ///   - index: the packet's number, unwrapped.
    ///   - startsKeyFrame: it is the first packet of a key frame.
    /// - Returns: whether the frame is complete now.
    mutating func receive(index: Int64, timestamp: UInt32, marker: Bool, startsKeyFrame: Bool) -> Bool {
        if startsKeyFrame, self.timestamp != timestamp {
            // A newer key frame takes the place of one that has holes.
            guard self.timestamp == nil || index > start else { return false }
            self.timestamp = timestamp
            start = index
            end = nil
            seen.removeAll(keepingCapacity: true)
        } else if startsKeyFrame {
            // H.264 may say so of several packets of one frame.
            start = min(start, index)
        }
        guard timestamp == self.timestamp, index >= start, seen.count < Self.limit else { return false }
        seen.insert(index)
        if marker { end = index }
        guard let end else { return false }
        return seen.count == Int(end - start) + 1
    }
}
