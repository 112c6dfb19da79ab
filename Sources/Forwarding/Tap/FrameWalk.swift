/// Finds the last packet of the frame that begins with a given one, and looks at none twice.
///
/// Where the frame ends is asked again with each packet behind it that may have made it whole. What was found to be
/// there is kept for as long as the frame is the latest key frame, so the walk goes on where it stopped: a frame that
/// never ends costs as many steps as it has packets, however many come behind it.
struct FrameWalk {
    /// What tells the frames of packets apart.
    struct Step: Equatable {
        let timestamp: UInt32
        let marker: Bool
    }

    /// Packets that a frame may have, at most; one that has more does not end.
    static let limit = 2_048

    private var frame: TapMark?
    /// Of the frame; nil before its first packet was looked at.
    private var timestamp: UInt32?
    /// The first number that is still to be looked at: all before it are there, of one time, and not the last.
    private var reach: Int64 = 0

    /// - Parameters:
    ///   - frame: another one than the last time begins another walk.
    ///   - step: looks at the packet of a number; nil if it is not there.
    /// - Returns: the last packet's number; nil while packets are missing, or if there are too many.
    mutating func end(of frame: TapMark, _ step: (Int64) -> Step?) -> Int64? {
        if self.frame != frame { (self.frame, timestamp, reach) = (frame, nil, frame.sequenceNumber) }
        while reach &- frame.sequenceNumber < Int64(Self.limit), let packet = step(reach) {
            guard packet.timestamp == timestamp ?? packet.timestamp else { return reach &- 1 }
            if packet.marker { return reach }
            timestamp = packet.timestamp
            reach &+= 1
        }
        return nil
    }
}
