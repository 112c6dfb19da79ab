/// How a viewer swipes.
struct FeedSettings: Sendable {
    /// The streams, in the order in which they are swiped through.
    var streams: [String]
    /// Nanoseconds from one swipe to the next, on average.
    var interval: Int64
    /// Of all swipes, those that go anywhere, 0 to 1.
    var jumps: Double
    /// Of the others, those that turn back the way they came.
    var turns: Double
    /// Of the others, those that are called off before the next story is reached.
    var callsOff: Double
    /// Of the moves.
    var seed: UInt64
    /// Looks into every packet; the others are told by their headers.
    var isMeasured: Bool
}

/// The next move of a viewer.
enum SwipeMove: Equatable, Sendable {
    /// To a neighbour, after a drag; the direction is +1 or -1.
    case swipe(Int, direction: Int)
    /// A drag towards a neighbour that is let go.
    case callOff(Int, direction: Int)
    case jump(Int)
}

/// Decides how a viewer moves through a feed; the same seed gives the same moves.
struct SwipePattern {
    private(set) var direction = 1
    private let settings: FeedSettings

    init(_ settings: FeedSettings) {
        self.settings = settings
    }

    /// - Returns: nil where there is nowhere to go.
    mutating func next(from focus: Int, using random: inout some RandomNumberGenerator) -> SwipeMove? {
        let count = settings.streams.count
        guard count > 1 else { return nil }
        if count > 2, Double.random(in: 0..<1, using: &random) < settings.jumps {
            // Neither here nor to a neighbour, if there are others.
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
