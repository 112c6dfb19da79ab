import Base

/// What the clients of one thread have seen and done since its start.
///
/// Every number only grows, so that the difference of two copies tells of the time between.
struct Tally: Equatable, Sendable {
    // Viewers.
    /// RTP packets of media, each counted once however often it came.
    var packets: UInt64 = 0
    var videoPackets: UInt64 = 0
    /// Of UDP payload, everything that came.
    var bytes: UInt64 = 0
    /// Media packets between the first and the newest that each viewer got.
    var expected: UInt64 = 0
    /// Came after one that was sent later, unless asked for.
    var reordered: UInt64 = 0
    var duplicates: UInt64 = 0
    /// Came by retransmission.
    var repaired: UInt64 = 0
    var repairsAskedFor: UInt64 = 0
    var decrypted: UInt64 = 0
    /// Failed to decrypt, or are no RTP.
    var unreadable: UInt64 = 0
    var keyFrameRequestsSent: UInt64 = 0
    /// From the publisher to the viewer's socket, in nanoseconds, of packets that carry a stamp.
    var latency = LogHistogram()
    /// Difference of the latencies of one after another such packet of a viewer, in nanoseconds.
    var jitter = LogHistogram()

    // Publishers.
    var packetsSent: UInt64 = 0
    var bytesSent: UInt64 = 0
    var framesSent: UInt64 = 0
    var keyFramesSent: UInt64 = 0
    var keyFrameRequests: UInt64 = 0
    var nacksReceived: UInt64 = 0
    var packetsResent: UInt64 = 0
    /// How late bursts left, in nanoseconds.
    var lateness = LogHistogram()

    // Viewers of a feed, and the publishers they watch.
    var swiping = SwipeTally()

    // The thread.
    var closedByServer: UInt64 = 0
    var failures: UInt64 = 0
    /// Datagrams that came while a socket's buffer was full.
    var droppedByKernel: UInt64 = 0
    /// Datagrams that the kernel did not take.
    var unsent: UInt64 = 0
    /// CPU time, in nanoseconds.
    var processorTime: Int64 = 0

    private static let counters: [any WritableKeyPath<Tally, UInt64> & Sendable] = [
        \.packets, \.videoPackets, \.bytes, \.expected, \.reordered, \.duplicates, \.repaired,
        \.repairsAskedFor,
        \.decrypted, \.unreadable, \.keyFrameRequestsSent, \.packetsSent, \.bytesSent, \.framesSent,
        \.keyFramesSent, \.keyFrameRequests, \.nacksReceived, \.packetsResent, \.closedByServer, \.failures,
        \.droppedByKernel, \.unsent,
    ]
    private static let histograms: [any WritableKeyPath<Tally, LogHistogram> & Sendable] = [
        \.latency, \.jitter, \.lateness,
    ]

    static func + (left: Tally, right: Tally) -> Tally {
        var sum = left
        for counter in counters { sum[keyPath: counter] &+= right[keyPath: counter] }
        for histogram in histograms { sum[keyPath: histogram].add(right[keyPath: histogram]) }
        sum.processorTime += right.processorTime
        sum.swiping = left.swiping + right.swiping
        return sum
    }

    /// What happened since `earlier`, a copy of the same tally.
    func since(_ earlier: Tally) -> Tally {
        var difference = self
        for counter in Self.counters {
            let (now, before) = (self[keyPath: counter], earlier[keyPath: counter])
            difference[keyPath: counter] = now > before ? now - before : 0
        }
        for histogram in Self.histograms {
            difference[keyPath: histogram] = self[keyPath: histogram].since(earlier[keyPath: histogram])
        }
        difference.processorTime -= earlier.processorTime
        difference.swiping = swiping.since(earlier.swiping)
        return difference
    }

    var lost: UInt64 { expected > packets ? expected - packets : 0 }
    /// Of the packets expected, those that never came.
    var loss: Double { expected == 0 ? 0 : Double(lost) / Double(expected) }
}

/// A thread's tally at one moment, and what can only be said of that moment.
struct Snapshot: Sendable {
    /// Of all clients.
    var tally = Tally()
    /// Of those among them who play before a storm.
    var earlier = Tally()
    var time = MonotonicTime.zero
    var viewers = 0
    /// Viewers that got nothing for a second.
    var stalled = 0
    var publishers = 0
}
