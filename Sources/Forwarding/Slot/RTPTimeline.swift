import Base
import Wire

/// Turns one source after another into one continuous RTP stream.
///
/// The receiver sees one SSRC whose sequence numbers have no gap but those of the source, and whose time stamps
/// go forward by the real time that passed, however often the source changes. A few earlier segments are kept, so
/// that a retransmission asked for after a switch is still found.
/// - Source: RFC 3550 §5.1; RFC 3711 §3.3.1 (a jump of 2^15 or more would desynchronise the roll-over counter).
package struct RTPTimeline<Source: AnyObject> {
    /// How the numbers of one source become those of the receiver.
    ///
    /// Holds no reference, so that reading it for a packet counts none.
    package struct Mapping {
        /// Of the source: in another one its numbers mean other packets.
        package let epoch: Int
        /// The first packet of the source that belongs here; earlier ones are not sent.
        package let firstSourceSequence: Int64
        /// Added to the source's extended sequence number.
        package let sequenceOffset: Int64
        /// Added to the source's time stamp, wrapping.
        package let timestampOffset: UInt32
        /// Added to the picture numbers of the payload.
        package let pictures: PictureOffsets
        /// Where the live edge was when the segment began, if it began before that.
        package var edge: Edge?
        /// The receiver's number of the first packet that it got when it came; everything before is to be shown at
        /// once.
        fileprivate(set) var caughtUp = Int64.min

        /// Nil for what came before the segment.
        package func outgoing(_ sequence: Int64) -> Int64? {
            sequence >= firstSourceSequence ? sequence &+ sequenceOffset : nil
        }

        /// The receiver's time stamp for a packet of the source.
        ///
        /// What came before the live edge is moved close to it, so that a decoder which shows frames at their time
        /// arrives there with what comes next. It depends on the packet alone: a packet that is sent again under
        /// the same index is the same.
        package func outgoing(timestamp: UInt32, of sequence: Int64) -> UInt32 {
            guard let edge, sequence <= edge.sequence else { return timestamp &+ timestampOffset }
            return edge.timestamp &+ timestampOffset &- edge.distance(to: timestamp)
        }

        /// What the packet with the receiver's number `index` says of when it is to be shown.
        package func playout(of index: Int64) -> PlayoutHint {
            guard caughtUp != .min else { return .asPublished }
            if index < caughtUp { return .atOnce }
            return index < caughtUp &+ PlayoutHint.repetitions ? .asUsual : .asPublished
        }
    }

    /// A run of packets from one source.
    package struct Segment {
        /// Where the packets come from.
        package let source: Source
        package fileprivate(set) var mapping: Mapping
        /// Leaves out packets of the source, if the receiver was ever to get fewer.
        fileprivate(set) var sieve: FrameSieve?

        package var sequenceOffset: Int64 { mapping.sequenceOffset }
        package var timestampOffset: UInt32 { mapping.timestampOffset }
        package var pictures: PictureOffsets { mapping.pictures }

        /// The number under which a packet of the source leaves; nil for one that was left out.
        package func outgoing(_ sequence: Int64) -> Int64? { mapping.outgoing(sequence) }

        /// What is added to the picture numbers of a packet of the source.
        func pictureOffsets(of sequence: Int64) -> PictureOffsets {
            guard let sieve else { return pictures }
            return pictures.leavingOut(sieve.omissions(before: sequence)?.pictures ?? 0)
        }

        package func outgoing(timestamp: UInt32, of sequence: Int64) -> UInt32 {
            mapping.outgoing(timestamp: timestamp, of: sequence)
        }

        package func playout(of index: Int64) -> PlayoutHint { mapping.playout(of: index) }
    }

    /// The newest packet of a source at the moment a segment began.
    package struct Edge {
        package let sequence: Int64
        package let timestamp: UInt32
        /// By how many binary places time before the edge is compressed.
        package fileprivate(set) var compression = Self.usualCompression

        /// A 32nd: a frame of 30 a second takes one millisecond.
        fileprivate static var usualCompression: Int { 5 }
        /// A 1,024th: frames of up to 87 a second still have time stamps of their own.
        fileprivate static var strongestCompression: Int { 10 }

        package init(sequence: Int64, timestamp: UInt32) {
            self.sequence = sequence
            self.timestamp = timestamp
        }

        /// Ticks of the receiver between an earlier time stamp and the edge.
        func distance(to timestamp: UInt32) -> UInt32 {
            UInt32(max(Int32(bitPattern: self.timestamp &- timestamp), 0)) >> UInt32(compression)
        }

        /// The same edge, with what lies before it compressed as little as fits into `room` ticks.
        fileprivate func compressed(from timestamp: UInt32, into room: Int64) -> Edge {
            var edge = self
            while edge.compression < Self.strongestCompression, Int64(edge.distance(to: timestamp)) >= room {
                edge.compression += 1
            }
            return edge
        }
    }

    private static var segmentLimit: Int { 6 }

    /// Ticks a second.
    package let clockRate: Int64
    /// Oldest first; the last one is what is being sent.
    package private(set) var segments: [Segment] = [] { didSet { current = segments.last } }
    /// What is being sent.
    ///
    /// Stored here, because it is needed for every packet and the array lies elsewhere in memory.
    package private(set) var current: Segment?
    /// What the next packet of the current source gets.
    package private(set) var nextSequence: Int64
    private var lastTimestamp: UInt32
    private var lastSent: MonotonicTime?
    /// Ticks by which time stamps run ahead of the time that passed: earlier replays needed room.
    private var lead: Int64 = 0
    /// What the edge of the newest segment got, and when: the newest time stamp if the segment does not get there.
    private var promised: (timestamp: UInt32, at: MonotonicTime)?

    /// - Parameter random: the first sequence number is below 2^15, so that loss of the first packets cannot make
    ///   the receiver guess a wrong roll-over counter (RFC 3711 §3.3.1); the first time stamp is arbitrary.
    package init(clockRate: Int64, using random: inout some RandomNumberGenerator) {
        self.clockRate = clockRate
        nextSequence = Int64.random(in: 1...0x7FFF, using: &random)
        lastTimestamp = UInt32.random(in: 0...UInt32.max, using: &random)
    }

    /// Starts a new segment with the source's packet `sequence`, which is the next to be sent.
    ///
    /// - Parameter edge: the source's newest packet if that is a later one; it is the one whose time stamp follows
    ///   the time that passed, and those before it are moved together as far as that needs. A receiver that changes
    ///   from one to another many times a second would otherwise get ever later times to show things at.
    package mutating func begin(
        _ source: Source, epoch: Int = 0, at sequence: Int64, timestamp: UInt32, pictures: PictureOffsets,
        edge: Edge? = nil, now: MonotonicTime
    ) {
        let due = dueTicks(at: now)
        let edge = lastSent == nil ? edge : edge?.compressed(from: timestamp, into: due)
        let replayed = Int64(edge?.distance(to: timestamp) ?? 0)
        let step = max(due, replayed &+ 1)
        lead = lastSent == nil ? 0 : step &- due
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

    /// Goes on with the packet of the current source behind `sequence`, as if none was missing before it.
    ///
    /// - Parameter pictures: what is added to its picture numbers.
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

    /// The current segment has arrived at the live edge: what is sent next comes from the publisher right now.
    package mutating func catchUp() {
        guard !segments.isEmpty else { return }
        segments[segments.count - 1].mapping.caughtUp = nextSequence
    }

    /// Lets a sieve decide from now on which packets of the current source are sent.
    ///
    /// - Parameter isSure: whether the source is known to tell where layers may be taken in again.
    mutating func sift(isSure: Bool) -> FrameSieve? {
        guard let segment = current, !segments.isEmpty else { return nil }
        if let sieve = segment.sieve { return sieve }
        let first = segment.mapping.firstSourceSequence
        let newest = max(nextSequence &- 1 &- segment.sequenceOffset, first &- 1)
        let sieve = FrameSieve(from: first, after: newest, isSure: isSure)
        segments[segments.count - 1].sieve = sieve
        return sieve
    }

    /// Notes that a packet left, in the numbers of the receiver.
    /// - Returns: whether it is the newest one, not one that came late.
    @discardableResult
    package mutating func sent(_ sequence: Int64, timestamp: UInt32, at now: MonotonicTime) -> Bool {
        let isNewest = sequence >= nextSequence
        if isNewest { nextSequence = sequence &+ 1 }
        if lastSent == nil || Int32(bitPattern: timestamp &- lastTimestamp) >= 0 {
            lastTimestamp = timestamp
            lastSent = now
        }
        return isNewest
    }

    /// The segment that the receiver's 16-bit `sequenceNumber` was sent in, and its number at the source.
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

    /// Stops sending; the numbers stay, for the source that comes next.
    package mutating func end() {
        segments.removeAll()
    }

    /// Ticks from the newest time stamp to the one that belongs to `now`; not positive while there is a lead.
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
