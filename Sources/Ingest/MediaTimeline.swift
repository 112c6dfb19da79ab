import Base

/// Places all media of a publisher on one time line, in the server's clock.
///
/// Time stamps give the distances between captures. The packet with the least network delay gives the absolute time:
/// the earliest arrival of the last seconds is the reference for all others. Sound and pictures follow the same rule,
/// so they stay in sync.
package struct MediaTimeline: Sendable {
    /// Steps beyond this, in milliseconds, are a clock that was reset and not a pause.
    private static let leap: Int64 = 10_000
    /// Steps back beyond this, in milliseconds, are a clock that was reset: one kind's time stamps grow.
    private static let setback: Int64 = 1_000
    /// How long one reference is kept; long enough to contain a packet with little delay, short enough to follow
    /// drift.
    private static let window = Duration.seconds(10)
    /// In milliseconds, 34 years: within it no arithmetic overflows.
    private static let limit: Int64 = 1 << 40

    /// A kind of media, whose packets come in the order of their time stamps.
    ///
    /// Packets of the other kind may be behind, by however long an encoder takes to deliver them.
    package enum Kind: Sendable {
        case sound, picture

        fileprivate var other: Kind { self == .sound ? .picture : .sound }
    }

    /// The place of one packet on the time line.
    package struct Place: Equatable, Sendable {
        /// In milliseconds since the first packet, slightly negative for earlier media; never jumps, nor does it go
        /// back by more than a second from one packet of a kind to the next.
        package let media: Int64
        /// When it was captured, on the server's clock; never later than its arrival.
        package let captured: MonotonicTime
    }

    /// The last packet of each kind: its time stamp and its media time.
    private var last: [Kind: (timestamp: UInt32, media: Int64)] = [:]
    /// The packet with the latest media time: that, and its arrival.
    private var latest: (media: Int64, arrival: MonotonicTime)?
    /// When media time 0 was captured, as estimated now.
    private var origin = MonotonicTime.zero
    /// The earliest `origin` that the packets of the current window permit; nil before the first.
    private var candidate: MonotonicTime?
    private var windowEnd = MonotonicTime.zero

    package init() {}

    /// Places a packet.
    /// - Parameters:
    ///   - timestamp: in milliseconds, modulo 2^32.
    ///   - kind: of the media in it.
    ///   - now: when the packet arrived.
    package mutating func place(
        _ timestamp: UInt32, of kind: Kind = .picture, at now: MonotonicTime
    ) -> Place {
        // After a reset of its clock the encoder continues where it would be by now.
        let due = latest.map { $0.media + now.nanoseconds(since: $0.arrival) / 1_000_000 }
        let found = following(timestamp, of: kind) ?? beside(timestamp, of: kind) ?? due ?? 0
        let media = min(max(found, -Self.limit), Self.limit)
        last[kind] = (timestamp, media)
        if latest.map({ media >= $0.media }) ?? true { latest = (media, now) }
        let start = now.advanced(byNanoseconds: -media * 1_000_000)
        follow(start, at: now)
        return Place(media: media, captured: origin.advanced(byNanoseconds: media * 1_000_000))
    }

    /// The media time by the packet before of the same kind; nil if there is none, or its clock was reset since.
    private func following(_ timestamp: UInt32, of kind: Kind) -> Int64? {
        guard let own = last[kind] else { return nil }
        let step = Self.step(to: timestamp, from: own.timestamp)
        return (-Self.setback...Self.leap).contains(step) ? own.media + step : nil
    }

    /// The media time by the last packet of the other kind; nil if there is none, or it has another clock.
    private func beside(_ timestamp: UInt32, of kind: Kind) -> Int64? {
        guard let other = last[kind.other] else { return nil }
        // Where this kind has gone back by little, the other's last packet may still be of the former clock.
        let own = last[kind].map { Self.step(to: timestamp, from: $0.timestamp) } ?? 0
        let limit = (-Self.leap..<0).contains(own) ? Self.setback : Self.leap
        let step = Self.step(to: timestamp, from: other.timestamp)
        return step.magnitude <= UInt64(limit) ? other.media + step : nil
    }

    /// In milliseconds, on the shorter way around the end of 32 bits.
    private static func step(to timestamp: UInt32, from earlier: UInt32) -> Int64 {
        Int64(Int32(bitPattern: timestamp &- earlier))
    }

    /// Updates `origin`: immediately for a packet with less delay, after each window for a clock that drifts.
    private mutating func follow(_ start: MonotonicTime, at now: MonotonicTime) {
        guard let earliest = candidate else {
            origin = start
            candidate = start
            windowEnd = now + Self.window
            return
        }
        candidate = min(earliest, start)
        // A packet cannot be captured after it arrived.
        if start < origin { origin = start }
        guard now >= windowEnd else { return }
        origin = candidate ?? start
        candidate = start
        windowEnd = now + Self.window
    }
}
