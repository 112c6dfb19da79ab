import Base

/// Finds what was lost because nothing at all got through for a while, as where a phone changes cells.
///
/// That says nothing of how much the path takes, unlike what a full queue drops: it lets something pass all the time.
package struct Outages: Sendable {
    /// Consecutive packets that were all lost, and were sent over at least this time, were lost in an outage.
    private static let shortest = Duration.milliseconds(500)
    /// There are at least so many of them: where little is sent, a few in a row may be lost by chance.
    private static let fewest = 20

    /// By their places among what was told.
    private var ranges: [Range<Int>] = []

    /// - Parameter outcomes: in the order in which the packets were sent.
    package init(in outcomes: [PacketOutcome]) {
        guard outcomes.count >= Self.fewest else { return }
        var start = 0
        for place in 0...outcomes.count {
            let isLost = place < outcomes.count && outcomes[place].arrival == nil
            if isLost { continue }
            if place - start >= Self.fewest, let first = outcomes[start...].first,
                outcomes[place - 1].sent >= first.sent + Self.shortest
            {
                ranges.append(start..<place)
            }
            start = place + 1
        }
    }

    /// Whether a packet was sent in one.
    package func contains(_ place: Int) -> Bool { ranges.contains { $0.contains(place) } }
}
