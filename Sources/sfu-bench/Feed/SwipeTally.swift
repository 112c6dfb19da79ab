/// What viewers of a feed have seen and done, and what it cost the publishers.
///
/// Counts only grow, as those of `Tally` do.
struct SwipeTally: Equatable, Sendable {
    /// From a `focus` to what it brought, in nanoseconds.
    struct Delays: Equatable, Sendable {
        /// The first packet of the stream's video at full quality.
        var packet = LogHistogram()
        /// The same, less the time in which its publisher had not sent it yet.
        var way = LogHistogram()
        /// The first complete frame that can be decoded.
        var frame = LogHistogram()
        /// The first packet of its sound.
        var audio = LogHistogram()

        fileprivate static let all: [any WritableKeyPath<Delays, LogHistogram> & Sendable] = [
            \.packet, \.way, \.frame, \.audio,
        ]
    }

    /// Messages that put another stream into focus.
    var swipes: UInt64 = 0
    /// Of these, those to a stream that was not the next one.
    var jumps: UInt64 = 0
    var peeks: UInt64 = 0
    /// Swipes that began and were called off.
    var calledOff: UInt64 = 0
    /// The next one came before picture and sound were there.
    var unfinished: UInt64 = 0
    var refused: UInt64 = 0
    /// The server put another stream into focus by itself.
    var moved: UInt64 = 0
    /// Packets of a stream that came later than 200 ms after it was released.
    var strays: UInt64 = 0
    /// Moments at which more than two streams came at once.
    var overTwo: UInt64 = 0
    /// Streams that began in a slot with something else than a key frame.
    var brokenStarts: UInt64 = 0
    /// Packets that did not say which stream they are of.
    var unnamed: UInt64 = 0
    /// Streams that one viewer got at once, at the most.
    var mostAttached = 0
    /// Key-frame requests that reached each publisher, by its number.
    private(set) var requests: [UInt64] = []
    /// To a stream whose picture was there already.
    var preloaded = Delays()
    var cold = Delays()
    /// From a `peek` to the first complete frame.
    var preload = LogHistogram()
    /// Between picture and sound after a swipe, by the server's sender reports.
    var skew = LogHistogram()

    mutating func requested(of stream: Int) {
        while requests.count <= stream { requests.append(0) }
        requests[stream] &+= 1
    }

    private static let counters: [any WritableKeyPath<SwipeTally, UInt64> & Sendable] = [
        \.swipes, \.jumps, \.peeks, \.calledOff, \.unfinished, \.refused, \.moved, \.strays, \.overTwo,
        \.brokenStarts, \.unnamed,
    ]
    private static let histograms: [any WritableKeyPath<SwipeTally, LogHistogram> & Sendable] = [
        \.preload, \.skew,
    ]

    static func + (left: SwipeTally, right: SwipeTally) -> SwipeTally {
        var sum = left
        for counter in counters { sum[keyPath: counter] &+= right[keyPath: counter] }
        for histogram in histograms { sum[keyPath: histogram].add(right[keyPath: histogram]) }
        for delay in Delays.all {
            sum.preloaded[keyPath: delay].add(right.preloaded[keyPath: delay])
            sum.cold[keyPath: delay].add(right.cold[keyPath: delay])
        }
        sum.mostAttached = max(left.mostAttached, right.mostAttached)
        for (stream, count) in right.requests.enumerated() {
            while sum.requests.count <= stream { sum.requests.append(0) }
            sum.requests[stream] &+= count
        }
        return sum
    }

    /// What happened since `earlier`, a copy of the same tally; the most that was attached stays.
    func since(_ earlier: SwipeTally) -> SwipeTally {
        var difference = self
        for counter in Self.counters {
            let (now, before) = (self[keyPath: counter], earlier[keyPath: counter])
            difference[keyPath: counter] = now > before ? now - before : 0
        }
        for histogram in Self.histograms {
            difference[keyPath: histogram] = self[keyPath: histogram].since(earlier[keyPath: histogram])
        }
        for delay in Delays.all {
            difference.preloaded[keyPath: delay] = preloaded[keyPath: delay].since(
                earlier.preloaded[keyPath: delay])
            difference.cold[keyPath: delay] = cold[keyPath: delay].since(earlier.cold[keyPath: delay])
        }
        for (stream, count) in earlier.requests.enumerated() where requests.indices.contains(stream) {
            difference.requests[stream] = requests[stream] > count ? requests[stream] - count : 0
        }
        return difference
    }
}
