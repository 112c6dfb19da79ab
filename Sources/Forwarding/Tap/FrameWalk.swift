/// Finds the last packet of the frame that begins with a given one, without looking at any packet twice.
///
/// The question is repeated with each packet that may complete the frame. The walk continues where it stopped while
/// the frame is the latest key frame. So a frame that never ends costs as many steps as it has packets, however many
/// arrive behind it.
struct FrameWalk {
    /// What assigns a packet to a frame.
    struct Step: Equatable {
        let timestamp: UInt32
        let marker: Bool
    }

    /// Maximum number of packets in a frame; a longer frame has no end.
    static let limit = 2_048

    private var frame: TapMark?
    /// The frame's timestamp; nil before its first packet was looked at.
    private var timestamp: UInt32?
    /// The first number to look at next: all before it exist, belong to the frame, and do not end it.
    private var reach: Int64 = 0

    /// Continues the walk.
    /// - Parameters:
    ///   - frame: the frame's first packet; a different one from the last call begins another walk.
    ///   - step: returns the packet with a number; nil if it is missing.
    /// - Returns: the number of the last packet; nil while packets are missing, or if there are too many.
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
