import Base

/// Remembers how far a TCP connection had come at which time, to tell how long what it sends has to wait, and at which
/// rate the peer takes it meanwhile.
struct BacklogHistory: Sendable {
    private struct Sample {
        let time: MonotonicTime
        /// Bytes that were acknowledged, and all that the connection was given.
        let acknowledged: UInt64
        var given: UInt64
    }

    /// Samples that are kept: of three seconds and more, as often as they come.
    private static let capacity = 160
    /// Over how long a rate is measured, if there is as much, and over how long at least.
    private static let usualSpan: Int64 = 400_000_000
    private static let shortestSpan: Int64 = 150_000_000
    /// What a slow reader takes comes in pieces, whenever its window opens; a rate needs several of them.
    private static let usualSteps = 5
    private static let fewestSteps = 2
    /// Share of the time that one pause may take; more is a path that stood still and is no slower for it.
    private static let longestPause = 0.6

    private var samples: [Sample] = []

    /// Takes in a sample that is no older than the last one.
    mutating func add(acknowledged: UInt64, given: UInt64, at now: MonotonicTime) {
        // What waited and was dropped is not under way any more.
        for index in samples.indices.reversed() {
            guard samples[index].given > given else { break }
            samples[index].given = given
        }
        if samples.count >= Self.capacity { samples.removeFirst(Self.capacity / 4) }
        samples.append(Sample(time: now, acknowledged: acknowledged, given: given))
    }

    /// How long ago the first byte was given that is not acknowledged yet; zero if there is none.
    func age(at now: MonotonicTime) -> Duration {
        guard let last = samples.last, last.given > last.acknowledged,
            let first = samples.first(where: { $0.given > last.acknowledged })
        else { return .zero }
        return now - first.time
    }

    /// Bits a second that were acknowledged lately, from one step to another; nil where there are too few.
    /// - Parameter start: when the connection began to be busy.
    func served(since start: MonotonicTime) -> Double? {
        guard let last = samples.last else { return nil }
        // Steps from the newest back: a sample by which more was acknowledged than by the one before.
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
