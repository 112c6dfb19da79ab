import Base
import ClientPeer
import TestSupport
import Testing

/// Runs a pacer in virtual time.
private struct PacerRun {
    var pacer: BurstPacer<Int>
    /// When each packet left.
    var departures: [(packet: Int, at: Int64)] = []

    /// Lets time pass in small steps and takes out what is due.
    mutating func run(from start: Int64, to end: Int64, step: Int64 = 250_000) {
        var now = start
        while now <= end {
            while let (packet, _) = pacer.next(at: MonotonicTime(nanoseconds: now)) {
                departures.append((packet, now))
            }
            now += step
        }
    }
}

@Suite struct `A burst pacer` {
    private static let millisecond: Int64 = 1_000_000

    private func enqueue(_ count: Int, into run: inout PacerRun, at nanoseconds: Int64, size: Int = 1_150) {
        for packet in 0..<count {
            run.pacer.enqueue(packet, size: size, at: MonotonicTime(nanoseconds: nanoseconds))
        }
    }

    @Test func `sends a frame in bursts at two and a half times the rate`() {
        // 1.5 Mbit/s: 2,343 bytes for each burst of 5 ms.
        var run = PacerRun(pacer: BurstPacer(bitrate: 1_500_000))
        enqueue(6, into: &run, at: 0)
        run.run(from: 0, to: 30 * Self.millisecond)
        #expect(run.departures.map(\.packet) == [0, 1, 2, 3, 4, 5])
        let bursts = Dictionary(grouping: run.departures, by: \.at)
        #expect(bursts.keys.sorted() == [0, 5, 10].map { $0 * Self.millisecond })
        #expect(bursts[0]?.count == 3)
    }

    /// A burst of 5 ms is a fraction of a byte.
    @Test func `sends at the lowest rate too`() {
        var run = PacerRun(pacer: BurstPacer(bitrate: 100))
        enqueue(2, into: &run, at: 0, size: 40)
        run.run(from: 0, to: 10 * Self.millisecond)
        #expect(run.departures.map(\.packet) == [0])
        run.run(from: 11 * Self.millisecond, to: 1_000 * Self.millisecond)
        #expect(run.departures.map(\.packet) == [0, 1] && run.pacer.isEmpty)
    }

    @Test func `keeps the rate over many frames`() {
        var run = PacerRun(pacer: BurstPacer(bitrate: 1_500_000))
        for frame in 0..<300 {
            let start = Int64(frame) * 33 * Self.millisecond
            enqueue(6, into: &run, at: start)
            run.run(from: start, to: start + 32 * Self.millisecond)
        }
        #expect(run.departures.count == 1_800)
        #expect(run.pacer.isEmpty)
    }

    @Test func `never sends more than its rate in a stretch of time`() {
        var run = PacerRun(pacer: BurstPacer(bitrate: 1_500_000))
        enqueue(40, into: &run, at: 0)
        run.run(from: 0, to: 500 * Self.millisecond)
        #expect(run.departures.count == 40)
        let budget = 1_500_000.0 * 2.5 / 8 / 1_000
        for departure in run.departures {
            let sent = run.departures.filter { $0.at <= departure.at }.count * 1_150
            let elapsed = Double(departure.at) / 1e6 + 5
            #expect(Double(sent) <= budget * elapsed + 1_150)
        }
    }

    @Test func `sends large packets at a low rate one by one`() {
        var run = PacerRun(pacer: BurstPacer(bitrate: 100_000))
        enqueue(3, into: &run, at: 0)
        run.run(from: 0, to: 200 * Self.millisecond)
        #expect(run.departures.count == 3)
        #expect(zip(run.departures, run.departures.dropFirst()).allSatisfy { $0.at < $1.at })
    }

    @Test func `makes up for a thread that was away`() {
        var run = PacerRun(pacer: BurstPacer(bitrate: 1_500_000))
        enqueue(12, into: &run, at: 0)
        run.run(from: 20 * Self.millisecond, to: 21 * Self.millisecond)
        #expect(run.departures.count >= 8)
    }

    @Test func `hurries when more waits than half a second's worth`() {
        var run = PacerRun(pacer: BurstPacer(bitrate: 300_000))
        enqueue(200, into: &run, at: 0)
        run.run(from: 0, to: 2_500 * Self.millisecond)
        #expect(run.pacer.isEmpty)
    }

    @Test func `lets all leave at once without an interval`() {
        var run = PacerRun(pacer: BurstPacer(bitrate: 100_000, interval: .zero))
        enqueue(50, into: &run, at: 7)
        run.run(from: 7, to: 7)
        #expect(run.departures.count == 50)
        #expect(run.pacer.deadline == nil)
    }

    @Test func `tells when it wants to be called`() {
        var pacer = BurstPacer<Int>(bitrate: 1_500_000)
        #expect(pacer.deadline == nil)
        let start = MonotonicTime(nanoseconds: 1_000)
        for packet in 0..<4 { pacer.enqueue(packet, size: 1_150, at: start) }
        #expect(pacer.deadline == start)
        while pacer.next(at: start) != nil {}
        #expect(pacer.deadline == start + .milliseconds(5))
    }
}
