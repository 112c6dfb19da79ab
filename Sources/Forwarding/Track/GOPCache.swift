import Base
import Peer
import Wire

/// The present group of pictures: from the latest key frame to the live edge.
///
/// It contains no packets. It determines from which packet on the layer's `PacketHistory` keeps them, and whether a
/// decoder could begin there now. A viewer who joins is sent the group immediately, so that the publisher need not be
/// asked for a key frame. A group that becomes too long or too large is dropped, because catching up with it costs
/// more than another key frame, as soon as one may be requested.
struct GOPCache {
    /// The newest packet, which a replay has to reach.
    struct Edge: Equatable {
        var sequenceNumber: Int64
        var timestamp: UInt32
        /// When it was captured, on the server's clock; nil while unknown.
        var captured: MonotonicTime?
        var arrival: MonotonicTime
    }

    /// A longer group is not replayed, unless the publisher may not be asked for a key frame yet.
    static let usualAge = Duration.seconds(4)
    /// Maximum age in any case; a viewer takes a second or more to catch up with such a group.
    static let maximumAge = KeyFrameRequester.Limits().maximumCostInterval
    /// Maximum size of the groups of all layers of a track, in bytes, beyond what retransmission needs.
    static let maximumBytes = 4 << 20
    /// How long after a replay a viewer may still request packets missing from it; this covers Chromium's and
    /// Firefox's requests.
    private static let farewell = Duration.seconds(1)
    /// A packet that has been missing for longer is not expected any more.
    private static let repairTime = Duration.milliseconds(300)
    /// Budget of sequence numbers by which groups may begin behind the newest packet; see `lateness`.
    static let latenessLimit: Int64 = 8_192
    /// Numbers that each packet returns to the budget.
    static let latenessGain: Int64 = 4

    /// How long a group may last now.
    ///
    /// A group that is cached longer than usual spares the publisher a key frame that would exceed viewers' share of
    /// its bit rate (see `KeyFrameRequester`), or replaces one that no request would bring.
    private var longest = Self.usualAge
    /// The first packet of the key frame; nil while there is no group.
    private(set) var start: Int64?
    private(set) var edge: Edge?
    private var codec: MediaCodec?
    private var keyTimestamp: UInt32?
    private var began = MonotonicTime.zero
    /// Until when a viewer who began with the group may need it.
    private var neededUntil = MonotonicTime.zero
    /// Number of packets that arrived from `start` on, each counted once.
    private var stored = 0
    /// Size of the key frame so far, in bytes; 0 once its end is known.
    private var keyFrameBytes = 0
    /// Remaining budget of numbers by which groups may begin behind the newest packet.
    ///
    /// Beginning a group takes a walk over all later packets. Few of the packets that are lost and retransmitted
    /// begin a group; a source in which all do must not make each of them cost thousands of steps.
    private var lateness = Self.latenessLimit

    /// Processes a packet that has just been stored for the first time.
    ///
    /// - Parameter capacity: size to which the history may grow for this group, in bytes.
    /// - Returns: the size of the latest key frame in bytes, with the first packet of the next frame; nil otherwise.
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

    /// - Returns: the size of the key frame in bytes, once its end is known; nil otherwise.
    private mutating func keyFrameSize(adding size: Int, _ timestamp: UInt32) -> Int? {
        guard keyFrameBytes > 0, let keyTimestamp else { return nil }
        let step = Int32(bitPattern: timestamp &- keyTimestamp)
        if step == 0 { keyFrameBytes += size }
        guard step > 0 else { return nil }
        defer { keyFrameBytes = 0 }
        return keyFrameBytes
    }

    /// The packet at which a decoder can begin now and reach the live edge; nil if there is none.
    ///
    /// - Parameters:
    ///   - isRepaired: whether missing packets may still arrive by retransmission.
    ///   - age: a group that began longer ago is not used; nil for the usual limit.
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

    /// Time since the group began; nil while there is none.
    func age(at now: MonotonicTime) -> Duration? {
        start.map { _ in .nanoseconds(now.nanoseconds(since: began)) }
    }

    /// Notes that a viewer has just been sent a part of the group, or is about to be.
    mutating func noteReplay(at now: MonotonicTime) {
        // The group never stays for more than twice its usual time, however slow viewers are.
        neededUntil = min(now + Self.farewell, began + longest + longest)
    }

    /// Sets how long the group has to last: until then, viewers cause no other key frame.
    mutating func last(for costInterval: Duration) {
        longest = min(max(costInterval, Self.usualAge), Self.maximumAge)
    }

    /// Drops the group; new viewers wait for the next key frame.
    mutating func flush(_ history: inout PacketHistory, at now: MonotonicTime) {
        start = nil
        history.stopKeeping(at: now)
    }

    /// Forgets everything about a source that has restarted.
    mutating func reset() {
        self = GOPCache()
    }

    /// Whether an entry point begins a new group.
    ///
    /// Several packets of one key frame may be entry points (H.264 parameter sets); the first one counts, whenever it
    /// arrives.
    private func beginsGroup(_ sequence: Int64, _ timestamp: UInt32) -> Bool {
        guard let keyTimestamp else { return true }
        guard timestamp == keyTimestamp else { return start.map { sequence > $0 } ?? true }
        return start.map { sequence < $0 } ?? false
    }

    /// - Returns: whether a group may begin this far behind the newest packet; if so, it is counted.
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
