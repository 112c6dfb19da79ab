import Base
import Peer
import Wire

/// The group of pictures that is coming in: from the latest key frame to the live edge.
///
/// Holds no packets. It says from where on the layer's `PacketHistory` keeps them, and whether a decoder could begin
/// there now: who joins is sent the group at once, and nobody has to ask the publisher for a key frame. A group that
/// gets too long or too large is let go, because what it takes to catch up with it is worse than one more key frame,
/// as soon as the publisher may be asked for one.
struct GOPCache {
    /// The newest packet: what a replay has to arrive at.
    struct Edge: Equatable {
        var sequenceNumber: Int64
        var timestamp: UInt32
        /// When it was captured, on our clock; nil while that is not known.
        var captured: MonotonicTime?
        var arrival: MonotonicTime
    }

    /// A group that lasts longer is not replayed, unless the publisher may not be asked yet.
    static let usualAge = Duration.seconds(4)
    /// However long that is: what takes a viewer a second or more to catch up with.
    static let maximumAge = KeyFrameRequester.Limits().maximumCostInterval
    /// Bytes that all layers of a track may keep, beyond what retransmission needs.
    static let maximumBytes = 4 << 20
    /// So long a viewer who was shown the past may ask for what it misses of it: as often as Chromium and Firefox do.
    private static let farewell = Duration.seconds(1)
    /// What is missing for longer is not expected any more.
    private static let repairTime = Duration.milliseconds(300)
    /// Numbers that groups may begin behind the newest packet, all together; see `lateness`.
    static let latenessLimit: Int64 = 8_192
    /// So many of them each packet gives back.
    static let latenessGain: Int64 = 4

    /// How long a group may last.
    ///
    /// One that is cached longer than usual spares the publisher a key frame that would cost more of its bitrate than
    /// viewers may take (see `KeyFrameRequester`), or stands in for one that no request would bring.
    private var longest = Self.usualAge
    /// The first packet of the key frame; nil while there is nothing to begin with.
    private(set) var start: Int64?
    private(set) var edge: Edge?
    private var codec: MediaCodec?
    private var keyTimestamp: UInt32?
    private var began = MonotonicTime.zero
    /// Until then a viewer may need it who began with it.
    private var neededUntil = MonotonicTime.zero
    /// Packets that came from `start` on, each once.
    private var stored = 0
    private var keyFrameBytes = 0
    /// How far behind the newest packet groups may still begin.
    ///
    /// To begin one is a walk over all that came behind it. Of packets that were lost and sent again few begin one;
    /// a source where all do must not have each of them cost thousands of steps.
    private var lateness = Self.latenessLimit

    /// Takes notice of a packet that has just been stored, for the first time.
    ///
    /// - Parameter capacity: bytes that the history may grow to for this group.
    /// - Returns: the size of the latest key frame, with the first packet of the frame behind it.
    mutating func note(
        _ packet: MediaPacket, size: Int, in history: inout PacketHistory, upTo capacity: Int,
        at now: MonotonicTime
    ) -> Int? {
        let sequence = packet.sequenceNumber
        let timestamp = packet.header.timestamp
        if edge.map({ sequence > $0.sequenceNumber }) ?? true {
            edge = Edge(
                sequenceNumber: sequence, timestamp: timestamp, captured: packet.captured, arrival: now)
        }
        lateness = min(lateness + Self.latenessGain, Self.latenessLimit)
        if packet.isEntryPoint, beginsGroup(sequence, timestamp), spendLateness(of: sequence) {
            begin(with: packet, size: size, in: &history, upTo: capacity, at: now)
            return nil
        }
        if let start, sequence > start { stored += 1 }
        if start != nil,
            !history.isKeeping || codec != packet.codec
                || now > began + longest && now > neededUntil
        {
            flush(&history, at: now)
        }
        return keyFrameSize(adding: size, timestamp)
    }

    /// - Returns: the size of the key frame, once it is known to be over.
    private mutating func keyFrameSize(adding size: Int, _ timestamp: UInt32) -> Int? {
        guard keyFrameBytes > 0, let keyTimestamp else { return nil }
        let step = Int32(bitPattern: timestamp &- keyTimestamp)
        if step == 0 { keyFrameBytes += size }
        guard step > 0 else { return nil }
        defer { keyFrameBytes = 0 }
        return keyFrameBytes
    }

    /// Where a decoder can begin now, and reach the live edge from.
    ///
    /// - Parameters:
    ///   - isRepaired: whether what is missing may still come.
    ///   - age: the group is of no use when it began longer ago; nil if any that may be replayed is.
    func entry(
        in history: borrowing PacketHistory, isRepaired: Bool, upTo age: Duration? = nil,
        at now: MonotonicTime
    ) -> Int64? {
        guard let start, let edge, history.isKeeping, now <= began + (age ?? longest) else { return nil }
        if Int64(stored) > edge.sequenceNumber &- start { return start }
        guard isRepaired else { return nil }
        guard let found = history.firstGapFound(from: start) else { return start }
        return now <= found + Self.repairTime ? start : nil
    }

    /// For how long the group has been coming; nil while there is none.
    func age(at now: MonotonicTime) -> Duration? {
        start.map { _ in .nanoseconds(now.nanoseconds(since: began)) }
    }

    /// A viewer has just been sent some of the group, or is about to be.
    mutating func noteReplay(at now: MonotonicTime) {
        // However slow viewers are: the group does not stay for twice as long.
        neededUntil = min(now + Self.farewell, began + longest + longest)
    }

    /// Says for how long the group will have to do: until then no other key frame comes for viewers' sake.
    mutating func last(for costInterval: Duration) {
        longest = min(max(costInterval, Self.usualAge), Self.maximumAge)
    }

    /// Lets the group go; who wants to begin waits for the next key frame.
    mutating func flush(_ history: inout PacketHistory, at now: MonotonicTime) {
        start = nil
        history.stopKeeping(at: now)
    }

    /// Forgets the source, whose numbers mean nothing any longer.
    mutating func reset() {
        self = GOPCache()
    }

    /// Several packets of one key frame may be entry points (H.264: parameter sets); the first one counts, whenever
    /// it comes.
    private func beginsGroup(_ sequence: Int64, _ timestamp: UInt32) -> Bool {
        guard let keyTimestamp else { return true }
        guard timestamp == keyTimestamp else { return start.map { sequence > $0 } ?? true }
        return start.map { sequence < $0 } ?? false
    }

    /// - Returns: whether a group may still begin so far behind the newest packet; if so, it counts.
    private mutating func spendLateness(of sequence: Int64) -> Bool {
        let behind = (edge?.sequenceNumber ?? sequence) &- sequence
        guard behind <= lateness else { return false }
        lateness -= behind
        return true
    }

    private mutating func begin(
        with packet: MediaPacket, size: Int, in history: inout PacketHistory, upTo capacity: Int,
        at now: MonotonicTime
    ) {
        start = packet.sequenceNumber
        keyTimestamp = packet.header.timestamp
        codec = packet.codec
        began = now
        neededUntil = now
        keyFrameBytes = size
        history.keep(from: packet.sequenceNumber, upTo: capacity)
        stored = history.count(from: packet.sequenceNumber)
    }
}
