import Base

/// One time line for all that a publisher sends, on our clock.
///
/// A publisher's time stamps say how far apart things were captured, and what comes first after little delay says when:
/// the earliest arrival of the last seconds is what the others are measured from. Sound and pictures are placed by the
/// same rule, so they stay together.
package struct MediaTimeline: Sendable {
    /// Steps beyond this are another clock, not a pause.
    private static let leap: Int64 = 10_000
    private static let window = Duration.seconds(10)
    /// 34 years: no arithmetic with it overflows.
    private static let limit: Int64 = 1 << 40

    /// Where something stands.
    package struct Place: Equatable, Sendable {
        /// In milliseconds from the first, or a little before it; never leaps.
        package let media: Int64
        /// On our clock; never later than now.
        package let captured: MonotonicTime
    }

    /// As it was sent, and where that stands.
    private var latest: (timestamp: UInt32, media: Int64, arrival: MonotonicTime)?
    /// When media time 0 was captured.
    private var origin = MonotonicTime.zero
    /// The earliest that it can have been by what came in this window.
    private var candidate: MonotonicTime?
    private var windowEnd = MonotonicTime.zero

    package init() {}

    /// - Parameter timestamp: in milliseconds, modulo 2^32.
    package mutating func place(_ timestamp: UInt32, at now: MonotonicTime) -> Place {
        var media: Int64 = 0
        if let latest {
            let step = Int64(Int32(bitPattern: timestamp &- latest.timestamp))
            // An encoder that begins anew goes on where it would be by now.
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

    private mutating func follow(_ start: MonotonicTime, at now: MonotonicTime) {
        guard let earliest = candidate else {
            origin = start
            candidate = start
            windowEnd = now + Self.window
            return
        }
        candidate = min(earliest, start)
        // Nothing can be captured after it came.
        if start < origin { origin = start }
        guard now >= windowEnd else { return }
        origin = candidate ?? start
        candidate = start
        windowEnd = now + Self.window
    }
}
