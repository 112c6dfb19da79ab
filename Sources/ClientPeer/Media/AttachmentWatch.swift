import Base

/// Counts from received packets how many streams a viewer is attached to at the same time.
///
/// A stream is attached from its first packet to its last one, whatever arrives between them. A gap longer than `pause`
/// separates two attachments, and so does `release`.
package struct AttachmentWatch {
    /// A packet's place in the order of arrival, and its time.
    ///
    /// A busy receiver gets many packets at the same time; their order tells more then.
    private struct Arrival {
        let number: UInt64
        let time: MonotonicTime
    }

    /// One attachment of a stream.
    private struct Episode {
        let stream: Int
        let start: Arrival
        var last: Arrival
        var isOver = false
    }

    /// In nanoseconds: longer than any gap of a stream that plays, shorter than the time in which a viewer returns to a
    /// stream.
    package static let pause: Int64 = 150_000_000
    /// Attachments that are remembered.
    private static let limit = 12
    /// In nanoseconds.
    private let tolerance: Int64
    private var episodes: [Episode] = []
    private var packets: UInt64 = 0
    /// The largest number of streams so far.
    package private(set) var most = 0

    /// - Parameter tolerance: by how much the network may reorder packets; shorter overlaps do not count.
    package init(tolerance: Duration = .zero) {
        self.tolerance = tolerance.wholeNanoseconds
    }

    /// Ends a stream's attachment, as the server reports it: later packets of the stream belong to another attachment.
    ///
    /// Without it, a viewer that gets few packets, or that goes back and forth, could begin the next one within
    /// `pause`.
    package mutating func release(_ stream: Int) {
        guard let index = episodes.lastIndex(where: { $0.stream == stream }) else { return }
        episodes[index].isOver = true
    }

    /// Records a packet.
    /// - Returns: the largest number of simultaneous streams that this packet reveals.
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
        // The packet reveals more than was known only if another stream has begun since the previous packet of this
        // one.
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
