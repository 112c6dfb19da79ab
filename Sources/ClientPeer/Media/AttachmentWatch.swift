import Base

/// Tells from the packets that come how many streams a viewer is attached to.
///
/// A stream counts from its first packet to its last one: between two of its packets it has been attached, whatever
/// came in between. Pauses longer than `pause` part two attachments, as does a caller who knows that the first is over.
package struct AttachmentWatch {
    /// Many packets come at one time to who was busy: their order tells more.
    private struct Arrival {
        let number: UInt64
        let time: MonotonicTime
    }

    private struct Episode {
        let stream: Int
        let start: Arrival
        var last: Arrival
        var isOver = false
    }

    /// Longer than the pauses of any stream that plays, shorter than a viewer needs to come back to one that it left.
    package static let pause: Int64 = 150_000_000
    /// Streams seen lately, at most.
    private static let limit = 12
    private let tolerance: Int64
    private var episodes: [Episode] = []
    private var packets: UInt64 = 0
    /// The most streams at once so far.
    package private(set) var most = 0

    /// - Parameter tolerance: by which a network may have put packets out of order; shorter meetings do not count.
    package init(tolerance: Duration = .zero) {
        self.tolerance = tolerance.wholeNanoseconds
    }

    /// Ends a stream's attachment, as the server says: packets that still come of it are of another one.
    ///
    /// A viewer that is starved, or that goes back and forth, may see the next one begin within `pause`.
    package mutating func release(_ stream: Int) {
        guard let index = episodes.lastIndex(where: { $0.stream == stream }) else { return }
        episodes[index].isOver = true
    }

    /// - Returns: how many streams came at once at the worst moment that this packet tells of.
    package mutating func receive(_ stream: Int, at now: MonotonicTime) -> Int {
        packets &+= 1
        let arrival = Arrival(number: packets, time: now)
        let index = episodes.lastIndex { $0.stream == stream }
        guard let index, !episodes[index].isOver,
            now.nanoseconds(since: episodes[index].last.time) < Self.pause
        else {
            if episodes.count >= Self.limit { episodes.removeFirst() }
            episodes.append(Episode(stream: stream, start: arrival, last: arrival))
            most = max(most, 1)
            return 1
        }
        let before = episodes[index].last
        episodes[index].last = arrival
        var worst = 1
        // Only where another stream began in between may the packet tell of more than was known.
        for other in episodes {
            let moment = other.start.time.advanced(byNanoseconds: tolerance)
            guard other.start.number > before.number || moment > before.time else { continue }
            let count = episodes.reduce(0) { count, episode in
                let isThere =
                    episode.start.number <= other.start.number && episode.last.number >= other.start.number
                return count + (isThere && episode.last.time >= moment ? 1 : 0)
            }
            worst = max(worst, count)
        }
        most = max(most, worst)
        return worst
    }
}
