/// Counters of feed viewers, and of the key-frame requests that they caused at publishers.
///
/// Like those of `Tally`, no number ever decreases.
struct SwipeTally: Equatable, Sendable {
    /// Times from a `focus` message to its effects, in nanoseconds.
    struct Delays: Equatable, Sendable {
        /// The first packet of the stream's video at full quality.
        var packet = LogHistogram()
        /// The same, without the time before its publisher sent that packet.
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
    /// Swipes to a stream that was not the next one.
    var jumps: UInt64 = 0
    var peeks: UInt64 = 0
    /// Swipes that began and were called off.
    var calledOff: UInt64 = 0
    /// Swipes that were followed by the next one before picture and sound had arrived.
    var unfinished: UInt64 = 0
    /// Messages that the server refused.
    var refused: UInt64 = 0
    /// How often the server itself put another stream into focus.
    var moved: UInt64 = 0
    /// Packets that arrived more than 200 ms after their stream was released.
    var strays: UInt64 = 0
    /// Packets with which more than two streams arrived at the same time.
    var overTwo: UInt64 = 0
    /// Streams that began in a slot without a key frame.
    var brokenStarts: UInt64 = 0
    /// Packets that do not name their stream.
    var unnamed: UInt64 = 0
    /// The most streams that one viewer received at the same time.
    var mostAttached = 0
    /// Key-frame requests that each publisher received, by its index.
    private(set) var requests: [UInt64] = []
    /// Of swipes to a stream whose picture was being decoded; `cold` has all others.
    var preloaded = Delays()
    var cold = Delays()
    /// From a `peek` to the first complete frame, in nanoseconds.
    var preload = LogHistogram()
    /// Difference between picture and sound after a swipe, by the server's sender reports, in nanoseconds.
    var skew = LogHistogram()

    /// Counts a key-frame request to the publisher with this index.
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
        // A maximum does not add up.
        sum.mostAttached = max(left.mostAttached, right.mostAttached)
        for (stream, count) in right.requests.enumerated() {
            while sum.requests.count <= stream { sum.requests.append(0) }
            sum.requests[stream] &+= count
        }
        return sum
    }

    /// What was counted since `earlier`, an older copy of the same tally.
    ///
    /// `mostAttached` remains that of the whole time.
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
