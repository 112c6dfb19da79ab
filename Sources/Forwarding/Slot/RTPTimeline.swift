import Base
import Wire

/// Turns successive sources into one continuous RTP stream.
///
/// The receiver sees one SSRC. Its sequence numbers have no gaps other than the source's, and its timestamps advance
/// by the real time that passed, however often the source changes. A few earlier segments are kept, so that a
/// retransmission requested after a switch can still be found.
/// - Source: RFC 3550 §5.1; RFC 3711 §3.3.1 (a jump of 2^15 or more would desynchronize the roll-over counter).
package struct RTPTimeline<Source: AnyObject> {
    /// The mapping from one source's numbers to the receiver's.
    ///
    /// It holds no reference, so that reading it for a packet does no reference counting.
    package struct Mapping {
        /// The source's epoch: in another one its numbers mean other packets.
        package let epoch: Int
        /// The first packet of the source that belongs here; earlier ones are not sent.
        package let firstSourceSequence: Int64
        /// Added to the source's extended sequence number.
        package let sequenceOffset: Int64
        /// Added to the source's timestamp, wrapping.
        package let timestampOffset: UInt32
        /// Added to the picture numbers of the payload.
        package let pictures: PictureOffsets
        /// The source's newest packet when the segment began with an earlier one; nil if it began at the live edge.
        package var edge: Edge?
        /// The receiver's number of the first packet after the replay; everything before is to be shown immediately.
        ///
        /// `.min` if the segment began at the live edge, `.max` while the replay goes on.
        fileprivate(set) var caughtUp = Int64.min

        /// The receiver's number of a source packet; nil for packets before the segment.
        package func outgoing(_ sequence: Int64) -> Int64? {
            sequence >= firstSourceSequence ? sequence &+ sequenceOffset : nil
        }

        /// The receiver's timestamp for a source packet.
        ///
        /// Timestamps before the live edge are moved close to it, so that a decoder that shows frames at their time
        /// reaches the edge when the live packets do. The result depends on the packet alone, so that a packet that
        /// is sent again under the same index is identical.
        package func outgoing(timestamp: UInt32, of sequence: Int64) -> UInt32 {
            guard let edge, sequence <= edge.sequence else { return timestamp &+ timestampOffset }
            return edge.timestamp &+ timestampOffset &- edge.distance(to: timestamp)
        }

        /// The playout hint of the packet with the receiver's number `index`.
        package func playout(of index: Int64) -> PlayoutHint {
            guard caughtUp != .min else { return .asPublished }
            if index < caughtUp { return .atOnce }
            return index < caughtUp &+ PlayoutHint.repetitions ? .asUsual : .asPublished
        }
    }

    /// A run of packets from one source.
    package struct Segment {
        /// The source of the packets.
        package let source: Source
        /// How its numbers become the receiver's.
        package fileprivate(set) var mapping: Mapping
        /// Drops packets of the source; nil unless the receiver was ever to get fewer.
        fileprivate(set) var sieve: FrameSieve?

        /// Added to the source's extended sequence number, before the sieve closes gaps.
        package var sequenceOffset: Int64 { mapping.sequenceOffset }
        /// Added to the source's timestamp at and after the live edge, wrapping.
        package var timestampOffset: UInt32 { mapping.timestampOffset }
        /// Added to the picture numbers of the payload, before the sieve closes gaps.
        package var pictures: PictureOffsets { mapping.pictures }

        /// The number of a source packet if nothing is dropped; nil for packets before the segment.
        package func outgoing(_ sequence: Int64) -> Int64? { mapping.outgoing(sequence) }

        /// The offsets of a source packet's picture numbers, including what the sieve dropped before it.
        func pictureOffsets(of sequence: Int64) -> PictureOffsets {
            guard let sieve else { return pictures }
            return pictures.leavingOut(sieve.omissions(before: sequence)?.pictures ?? 0)
        }

        /// The receiver's timestamp for a packet of the source.
        package func outgoing(timestamp: UInt32, of sequence: Int64) -> UInt32 {
            mapping.outgoing(timestamp: timestamp, of: sequence)
        }

        /// The playout hint of the packet with the receiver's number `index`.
        package func playout(of index: Int64) -> PlayoutHint { mapping.playout(of: index) }
    }

    /// The newest packet of a source at the moment when a segment began.
    package struct Edge {
        /// The source's extended sequence number.
        package let sequence: Int64
        /// The source's timestamp.
        package let timestamp: UInt32
        /// Time before the edge is divided by two to this power.
        package fileprivate(set) var compression = Self.usualCompression

        /// A 32nd of the time: at 30 frames a second, one frame takes a millisecond.
        fileprivate static var usualCompression: Int { 5 }
        /// A 1,024th of the time: at up to 87 frames a second, each frame still has a distinct timestamp.
        fileprivate static var strongestCompression: Int { 10 }

        package init(sequence: Int64, timestamp: UInt32) {
            self.sequence = sequence
            self.timestamp = timestamp
        }

        /// Ticks between an earlier timestamp and the edge, as the receiver gets them.
        func distance(to timestamp: UInt32) -> UInt32 {
            UInt32(max(Int32(bitPattern: self.timestamp &- timestamp), 0)) >> UInt32(compression)
        }

        /// The same edge with the least compression that fits the time before it into `room` ticks.
        fileprivate func compressed(from timestamp: UInt32, into room: Int64) -> Edge {
            var edge = self
            while edge.compression < Self.strongestCompression, Int64(edge.distance(to: timestamp)) >= room {
                edge.compression += 1
            }
            return edge
        }
    }

    /// Maximum number of segments kept for retransmissions.
    private static var segmentLimit: Int { 6 }
    /// Maximum step from one segment's timestamps to the next one's, in ticks: 6 h 38 min at 90 kHz.
    ///
    /// A longer one would be read as a step back, here and by the receiver. Sender reports relate the new timestamps to
    /// the clock.
    private static var longestStep: Int64 { Int64(Int32.max) }

    /// Clock rate, in ticks a second.
    package let clockRate: Int64
    /// The latest segments, the oldest first; the last one is being sent.
    package private(set) var segments: [Segment] = [] { didSet { current = segments.last } }
    /// The segment that is being sent; nil if none is.
    ///
    /// Stored separately, because it is needed for every packet and the array lies elsewhere in memory.
    package private(set) var current: Segment?
    /// The number of the next new packet.
    package private(set) var nextSequence: Int64
    private var lastTimestamp: UInt32
    private var lastSent: MonotonicTime?
    /// Ticks by which timestamps are ahead of real time, because earlier replays needed room.
    private var lead: Int64 = 0
    /// The timestamp assigned to the newest segment's edge, and when.
    ///
    /// It stands for the newest timestamp if the segment ends before its edge is sent.
    private var promised: (timestamp: UInt32, at: MonotonicTime)?

    /// Starts a stream with a random sequence number and timestamp.
    ///
    /// The first sequence number is below 2^15, so that the loss of the first packets cannot make the receiver guess
    /// a wrong roll-over counter (RFC 3711 §3.3.1).
    package init(clockRate: Int64, using random: inout some RandomNumberGenerator) {
        self.clockRate = clockRate
        nextSequence = Int64.random(in: 1...0x7FFF, using: &random)
        lastTimestamp = UInt32.random(in: 0...UInt32.max, using: &random)
    }

    /// Starts a new segment with the source's packet `sequence`, which is the next to be sent.
    ///
    /// - Parameter edge: the source's newest packet, if that is a later one. Its timestamp then follows the time that
    ///   passed, and those before it are compressed as far as necessary. Otherwise a receiver that switches many
    ///   times a second would get ever later times for display.
    package mutating func begin(
        _ source: Source, epoch: Int = 0, at sequence: Int64, timestamp: UInt32, pictures: PictureOffsets,
        edge: Edge? = nil, now: MonotonicTime
    ) {
        let due = dueTicks(at: now)
        let edge = lastSent == nil ? edge : edge?.compressed(from: timestamp, into: due)
        let replayed = Int64(edge?.distance(to: timestamp) ?? 0)
        let step = min(max(due, replayed &+ 1), Self.longestStep)
        lead = lastSent == nil ? 0 : max(step &- due, 0)
        let outgoing = lastTimestamp &+ UInt32(truncatingIfNeeded: step)
        promised = edge == nil ? nil : (outgoing, now)
        append(
            Segment(
                source: source,
                mapping: Mapping(
                    epoch: epoch, firstSourceSequence: sequence, sequenceOffset: nextSequence &- sequence,
                    timestampOffset: outgoing &- (edge?.timestamp ?? timestamp), pictures: pictures,
                    edge: edge, caughtUp: edge == nil ? .min : .max)))
    }

    private mutating func append(_ segment: Segment) {
        if segments.count == Self.segmentLimit { segments.removeFirst() }
        segments.append(segment)
    }

    /// Continues the current source behind its packet `sequence`, as if no packet was missing before.
    ///
    /// - Parameter pictures: added to the picture numbers from there on.
    mutating func closeGap(through sequence: Int64, pictures: PictureOffsets) {
        guard let segment = current else { return }
        let mapping = segment.mapping
        let sieve = segment.sieve.map { FrameSieve(continuing: $0, from: sequence &+ 1) }
        append(
            Segment(
                source: segment.source,
                mapping: Mapping(
                    epoch: mapping.epoch, firstSourceSequence: sequence &+ 1,
                    sequenceOffset: nextSequence &- (sequence &+ 1), timestampOffset: mapping.timestampOffset,
                    pictures: pictures, edge: mapping.edge, caughtUp: mapping.caughtUp),
                sieve: sieve))
    }

    /// Ends the replay of the current segment: from now on, live packets are sent.
    package mutating func catchUp() {
        guard !segments.isEmpty else { return }
        segments[segments.count - 1].mapping.caughtUp = nextSequence
    }

    /// Adds a sieve to the current segment, unless it has one.
    ///
    /// - Parameter isSure: whether the source is known to mark where layers may be resumed.
    /// - Returns: the segment's sieve; nil if nothing is being sent.
    mutating func sift(isSure: Bool) -> FrameSieve? {
        guard let segment = current, !segments.isEmpty else { return nil }
        if let sieve = segment.sieve { return sieve }
        let first = segment.mapping.firstSourceSequence
        let newest = max(nextSequence &- 1 &- segment.sequenceOffset, first &- 1)
        let sieve = FrameSieve(from: first, after: newest, isSure: isSure)
        segments[segments.count - 1].sieve = sieve
        return sieve
    }

    /// Records a packet that was sent, in the receiver's numbers.
    /// - Returns: whether it is the newest packet, as opposed to a late one.
    @discardableResult
    package mutating func sent(_ sequence: Int64, timestamp: UInt32, at now: MonotonicTime) -> Bool {
        let isNewest = sequence >= nextSequence
        if isNewest { nextSequence = sequence &+ 1 }
        let isAhead = Int32(bitPattern: timestamp &- lastTimestamp) >= 0
        if isAhead || isNewest && !isRecent(at: now) {
            lastTimestamp = timestamp
            lastSent = now
            // Past the edge the promise is kept; half a turn of the clock later it would seem to lie ahead again.
            if let promised, !isAhead || Int32(bitPattern: timestamp &- promised.timestamp) > 0 {
                self.promised = nil
            }
        }
        return isNewest
    }

    /// Whether the newest timestamp was sent so recently that a later one cannot be mistaken for an earlier one.
    ///
    /// A source that pauses for more than half a turn of the clock continues with a timestamp that seems to lie behind.
    private func isRecent(at now: MonotonicTime) -> Bool {
        guard let lastSent else { return false }
        return ticks(from: lastSent, to: now) <= Self.longestStep / 2
    }

    /// Finds the packet that was sent under the receiver's 16-bit `sequenceNumber`.
    /// - Returns: its segment, its number at the source, and its extended number; nil if it is too old, or was never
    ///   sent.
    package func origin(of sequenceNumber: UInt16) -> (segment: Segment, sequence: Int64, outgoing: Int64)? {
        let behind = UInt16(truncatingIfNeeded: nextSequence &- 1) &- sequenceNumber
        guard behind < 0x8000 else { return nil }
        let outgoing = nextSequence &- 1 &- Int64(behind)
        for segment in segments.reversed() {
            let sequence = outgoing &- segment.sequenceOffset
            guard sequence >= segment.mapping.firstSourceSequence else { continue }
            guard let sieve = segment.sieve else { return (segment, sequence, outgoing) }
            return sieve.origin(of: sequence).map { (segment, $0, outgoing) }
        }
        return nil
    }

    /// Stops sending; the next source continues the numbers.
    package mutating func end() {
        segments.removeAll()
    }

    /// Ticks from the newest timestamp to the one for `now`; not positive while timestamps are ahead.
    private func dueTicks(at now: MonotonicTime) -> Int64 {
        if let promised {
            let missing = Int64(Int32(bitPattern: promised.timestamp &- lastTimestamp))
            if missing >= 0 { return missing &+ ticks(from: promised.at, to: now) &- lead }
        }
        guard let lastSent else { return 1 }
        return max(ticks(from: lastSent, to: now), 1) &- lead
    }

    private func ticks(from start: MonotonicTime, to now: MonotonicTime) -> Int64 {
        let elapsed = max(now.nanoseconds(since: start), 0)
        let (seconds, rest) = elapsed.quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* clockRate &+ rest &* clockRate / 1_000_000_000
    }
}
