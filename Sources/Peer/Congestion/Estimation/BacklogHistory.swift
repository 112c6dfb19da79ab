import Base

/// Remembers a TCP connection's progress over time.
///
/// Shows how long data has to wait before it is acknowledged, and at which rate the peer acknowledges it meanwhile.
struct BacklogHistory: Sendable {
    private struct Sample {
        let time: MonotonicTime
        /// Bytes acknowledged by then, and all bytes that the connection had been given.
        let acknowledged: UInt64
        var given: UInt64
    }

    /// Most samples kept, about three seconds of them; when they are full, the oldest quarter is dropped.
    private static let capacity = 160
    /// Nanoseconds over which a rate is measured if the history is that long, and the least that it needs.
    private static let usualSpan: Int64 = 400_000_000
    private static let shortestSpan: Int64 = 150_000_000
    /// A slow reader acknowledges in steps, whenever its window opens; a rate needs several of them.
    private static let usualSteps = 5
    private static let fewestSteps = 2
    /// Share of the span that a single pause may take; a longer one is a path that stalled, not a slower path.
    private static let longestPause = 0.6

    private var samples: [Sample] = []

    /// Adds a sample that is no older than the last one.
    mutating func add(acknowledged: UInt64, given: UInt64, at now: MonotonicTime) {
        // Data that was queued and then dropped is no longer outstanding.
        for index in samples.indices.reversed() {
            guard samples[index].given > given else { break }
            samples[index].given = given
        }
        if samples.count >= Self.capacity { samples.removeFirst(Self.capacity / 4) }
        samples.append(Sample(time: now, acknowledged: acknowledged, given: given))
    }

    /// How long ago the first unacknowledged byte was given; zero if there is none.
    func age(at now: MonotonicTime) -> Duration {
        guard let last = samples.last, last.given > last.acknowledged,
            let first = samples.first(where: { $0.given > last.acknowledged })
        else { return .zero }
        return now - first.time
    }

    /// Bits per second acknowledged lately, measured from step to step; nil if there were too few steps.
    /// - Parameter start: when the connection became busy.
    func served(since start: MonotonicTime) -> Double? {
        guard let last = samples.last else { return nil }
        // Go back from the newest step: a step is a sample with more acknowledged bytes than the one before.
        var end: Sample?
        var begin: Sample?
        var steps = 0
        var pause: Int64 = 0
        var before = last
        for sample in samples.reversed().dropFirst() {
            defer { before = sample }
            guard sample.acknowledged < before.acknowledged else { continue }
            guard before.time >= start else { break }
            steps += 1
            guard let newest = end else {
                end = before
                begin = before
                continue
            }
            if let begin { pause = max(pause, begin.time.nanoseconds(since: before.time)) }
            begin = before
            let span = newest.time.nanoseconds(since: before.time)
            if span >= Self.usualSpan, steps >= Self.usualSteps { break }
        }
        guard let end, let begin, steps > Self.fewestSteps else { return nil }
        var span = end.time.nanoseconds(since: begin.time)
        guard span >= Self.shortestSpan else { return nil }
        if Double(pause) > Self.longestPause * Double(span), span - pause >= Self.shortestSpan {
            span -= pause
        }
        return Double(end.acknowledged - begin.acknowledged) * 8e9 / Double(span)
    }
}
