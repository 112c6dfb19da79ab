import Base

/// Places all media of a publisher on one time line, in the server's clock.
///
/// Time stamps give the distances between captures. The packet with the least network delay gives the absolute time:
/// the earliest arrival of the last seconds is the reference for all others. Sound and pictures follow the same rule,
/// so they stay in sync.
package struct MediaTimeline: Sendable {
    /// Steps beyond this, in milliseconds, are a clock that was reset and not a pause.
    private static let leap: Int64 = 10_000
    /// How long one reference is kept; long enough to contain a packet with little delay, short enough to follow
    /// drift.
    private static let window = Duration.seconds(10)
    /// In milliseconds, 34 years: within it no arithmetic overflows.
    private static let limit: Int64 = 1 << 40

    /// The place of one packet on the time line.
    package struct Place: Equatable, Sendable {
        /// In milliseconds since the first packet, slightly negative for earlier media; never jumps.
        package let media: Int64
        /// When it was captured, on the server's clock; never later than its arrival.
        package let captured: MonotonicTime
    }

    /// The packet with the latest time stamp: as sent, its media time, and its arrival.
    private var latest: (timestamp: UInt32, media: Int64, arrival: MonotonicTime)?
    /// When media time 0 was captured, as estimated now.
    private var origin = MonotonicTime.zero
    /// The earliest `origin` that the packets of the current window permit; nil before the first.
    private var candidate: MonotonicTime?
    private var windowEnd = MonotonicTime.zero

    package init() {}

    /// Places a packet.
    /// - Parameters:
    ///   - timestamp: in milliseconds, modulo 2^32.
    ///   - now: when the packet arrived.
    package mutating func place(_ timestamp: UInt32, at now: MonotonicTime) -> Place {
        var media: Int64 = 0
        if let latest {
            let step = Int64(Int32(bitPattern: timestamp &- latest.timestamp))
            // After a reset of its clock the encoder continues where it would be by now.
            let plausible = step.magnitude <= UInt64(Self.leap)
            media =
                plausible
                ? latest.media + step : latest.media + now.nanoseconds(since: latest.arrival) / 1_000_000
        }
        media = min(max(media, -Self.limit), Self.limit)
        if latest.map({ media >= $0.media }) ?? true { latest = (timestamp, media, now) }
        let start = now.advanced(byNanoseconds: -media * 1_000_000)
        follow(start, at: now)
        return Place(media: media, captured: origin.advanced(byNanoseconds: media * 1_000_000))
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
