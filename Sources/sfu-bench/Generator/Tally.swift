import Base

/// Counters of all clients of one thread, since its start.
///
/// No number ever decreases, so the difference of two copies describes the time between them.
struct Tally: Equatable, Sendable {
    // Viewers.
    /// RTP media packets; duplicates are not counted.
    var packets: UInt64 = 0
    var videoPackets: UInt64 = 0
    /// UDP payload of all media packets received, including repairs and duplicates.
    var bytes: UInt64 = 0
    /// Media packets from the first to the newest that each viewer received, gaps included.
    var expected: UInt64 = 0
    /// Arrived after a packet with a higher number; retransmissions are not counted.
    var reordered: UInt64 = 0
    var duplicates: UInt64 = 0
    /// Lost at first, then received by retransmission.
    var repaired: UInt64 = 0
    /// Packets listed in the NACKs that viewers sent.
    var repairsAskedFor: UInt64 = 0
    var decrypted: UInt64 = 0
    /// Packets that could not be decrypted or parsed.
    var unreadable: UInt64 = 0
    var keyFrameRequestsSent: UInt64 = 0
    /// Nanoseconds from the publisher to the viewer's socket, of decrypted packets with a stamp.
    var latency = LogHistogram()
    /// Absolute difference between the latencies of consecutive such packets of a stream, in nanoseconds.
    var jitter = LogHistogram()

    // Publishers.
    var packetsSent: UInt64 = 0
    var bytesSent: UInt64 = 0
    var framesSent: UInt64 = 0
    var keyFramesSent: UInt64 = 0
    /// PLIs and FIRs received from the server.
    var keyFrameRequests: UInt64 = 0
    var nacksReceived: UInt64 = 0
    var packetsResent: UInt64 = 0
    /// How long after its due time each packet left the pacer, in nanoseconds.
    ///
    /// Large values mean that this tool is overloaded.
    var lateness = LogHistogram()

    // Viewers of a feed, and the publishers whose streams they watch.
    var swiping = SwipeTally()

    // The thread.
    var closedByServer: UInt64 = 0
    var failures: UInt64 = 0
    /// Datagrams that the kernel dropped because a socket's buffer was full.
    var droppedByKernel: UInt64 = 0
    /// Datagrams that the kernel refused to send.
    var unsent: UInt64 = 0
    /// CPU time of the thread, in nanoseconds.
    var processorTime: Int64 = 0

    /// Lists that `+` and `since` go through; a new counter has to be added here, too.
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

    /// What was counted since `earlier`, an older copy of the same tally.
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
    /// The share of expected packets that never arrived, from 0 to 1.
    var loss: Double { expected == 0 ? 0 : Double(lost) / Double(expected) }
}

/// A thread's tally at one moment, with the state that applies only to that moment.
///
/// `Generator.snapshot` adds up those of all threads.
struct Snapshot: Sendable {
    /// Of all clients.
    var tally = Tally()
    /// Of those clients, the ones that were playing before a storm of joins.
    var earlier = Tally()
    var time = MonotonicTime.zero
    var viewers = 0
    /// Viewers that have received media before, but none for a second.
    var stalled = 0
    var publishers = 0
}
