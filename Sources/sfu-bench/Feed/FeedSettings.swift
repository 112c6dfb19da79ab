/// How a viewer swipes.
struct FeedSettings: Sendable {
    /// The streams, in the order in which they are swiped through.
    var streams: [String]
    /// Mean time between two swipes, in nanoseconds; 0 for no swipes.
    var interval: Int64
    /// Share of all swipes that jump to any stream, 0 to 1.
    var jumps: Double
    /// Share of the other swipes that reverse the direction.
    var turns: Double
    /// Share of the swipes without a jump that are called off before they reach the next stream.
    var callsOff: Double
    /// Decides the moves, and nothing else.
    var seed: UInt64
    /// Whether every packet is decrypted and inspected; else headers are counted once the first frame is complete.
    var isMeasured: Bool
}

/// A viewer's next move; streams are indices into `FeedSettings.streams`.
enum SwipeMove: Equatable, Sendable {
    /// To a neighbour, after a drag; the direction is +1 or -1.
    case swipe(Int, direction: Int)
    /// A drag towards a neighbour that ends without reaching it.
    case callOff(Int, direction: Int)
    /// To any stream, without a drag.
    case jump(Int)
}

/// Decides how a viewer moves through a feed; the same seed gives the same moves.
struct SwipePattern {
    /// Of the last swipe, +1 or -1.
    private(set) var direction = 1
    private let settings: FeedSettings

    init(_ settings: FeedSettings) {
        self.settings = settings
    }

    /// - Returns: nil if there is no other stream.
    mutating func next(from focus: Int, using random: inout some RandomNumberGenerator) -> SwipeMove? {
        let count = settings.streams.count
        guard count > 1 else { return nil }
        if count > 2, Double.random(in: 0..<1, using: &random) < settings.jumps {
            // To neither this stream nor a neighbour, if there are others.
            let far = count > 3 ? Int.random(in: 2...(count - 2), using: &random) : 1
            return .jump((focus + far) % count)
        }
        if Double.random(in: 0..<1, using: &random) < settings.turns { direction = -direction }
        let target = neighbour(of: focus)
        return Double.random(in: 0..<1, using: &random) < settings.callsOff
            ? .callOff(target, direction: direction) : .swipe(target, direction: direction)
    }

    /// The next stream in the direction of the last swipe; the feed is a ring.
    func neighbour(of stream: Int) -> Int {
        let count = max(settings.streams.count, 1)
        return (stream + direction + count) % count
    }
}
