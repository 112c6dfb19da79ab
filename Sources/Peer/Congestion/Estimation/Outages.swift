import Base

/// Finds losses during which nothing at all got through for a while, as when a phone changes cells.
///
/// Such a loss shows nothing about how much the path takes, unlike a full queue, which lets something pass all the
/// time.
package struct Outages: Sendable {
    /// Consecutive lost packets that were sent over at least this time were lost in an outage.
    private static let shortest = Duration.milliseconds(500)
    /// Fewest packets in an outage: in sparse traffic a few in a row may be lost by chance.
    private static let fewest = 20

    /// Positions within the outcomes.
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

    /// Whether the packet at this position was lost in an outage.
    package func contains(_ place: Int) -> Bool { ranges.contains { $0.contains(place) } }
}
