import Base
import Testing

@testable import sfu_bench

private func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}

@Suite struct `What happened between two marks` {
    /// A mark, and the snapshot of the threads that belongs to it.
    private func mark(
        at milliseconds: Int64, snapshot: Int64? = nil, serverSeconds: Double? = nil,
        _ change: (inout Snapshot) -> Void = { _ in }
    ) -> Mark {
        var found = Snapshot()
        found.time = time(snapshot ?? milliseconds)
        change(&found)
        return Mark(
            time: time(milliseconds), snapshot: found,
            server: serverSeconds.map { ProcessFiles.Usage(processorSeconds: $0, residentBytes: 1_000) },
            own: OwnLoad(time: time(milliseconds), threads: [:], processNanoseconds: 0))
    }

    /// Threads report up to 100 ms late, at both ends.
    @Test func `is counted over the time between the snapshots`() {
        let interval = Interval(
            from: mark(at: 1_000, snapshot: 990) { $0.tally.packets = 50 },
            to: mark(at: 3_000, snapshot: 2_990) { $0.tally.packets = 1_050 })
        #expect(interval.seconds == 2 && interval.tally.packets == 1_000)
        #expect(interval.perSecond(interval.tally.packets) == 500)
    }

    @Test func `has a length even if there is one mark only`() {
        let only = mark(at: 1_000, serverSeconds: 5) { $0.tally.packets = 50 }
        let interval = Interval(from: only, to: only)
        #expect(interval.seconds == 0.001 && interval.perSecond(0) == 0)
        #expect(interval.serverCores == 0 && interval.microsecondsPerPacket == nil)
        let media = interval.media(interval.tally)
        #expect(media.packets == 0 && media.lossPercent == 0 && media.latency == nil)
    }

    @Test func `costs the server what it used, by its own clock`() {
        let interval = Interval(
            from: mark(at: 1_000, snapshot: 2_000, serverSeconds: 4),
            to: mark(at: 3_000, snapshot: 3_000, serverSeconds: 5) { $0.tally.packets = 1_000 })
        #expect(interval.serverSeconds == 1 && interval.serverCores == 0.5)
        // Half a second of CPU in each second, for a thousand packets in each second.
        let cost = interval.microsecondsPerPacket ?? 0
        #expect(abs(cost - 500) < 1e-6)
    }

    @Test func `costs the server nothing that is known if its use is not known at both ends`() {
        let (unknown, known) = (mark(at: 1_000), mark(at: 2_000, serverSeconds: 5) { $0.tally.packets = 10 })
        for interval in [Interval(from: unknown, to: known), Interval(from: known, to: unknown)] {
            #expect(interval.serverSeconds == nil && interval.serverCores == nil)
            #expect(interval.microsecondsPerPacket == nil)
            #expect(interval.serverMicroseconds(per: 10, besides: nil) == nil)
        }
    }

    @Test(
        arguments: [(100, nil, 10_000), (100, 0.25, 5_000), (100, 0.5, nil), (100, 0.75, nil), (0, nil, nil)]
            as [(Int, Double?, Double?)])
    func `costs what is left besides the load of others`(count: Int, others: Double?, cost: Double?) {
        let interval = Interval(
            from: mark(at: 1_000, serverSeconds: 4), to: mark(at: 3_000, serverSeconds: 5))
        let found = interval.serverMicroseconds(per: count, besides: others)
        #expect((found == nil) == (cost == nil))
        #expect(abs((found ?? 0) - (cost ?? 0)) < 1e-6)
    }

    @Test func `is what came for viewers, those of before apart`() {
        let interval = Interval(
            from: mark(at: 0) {
                $0.tally.latency.add(9_000_000)
                $0.stalled = 7
            },
            to: mark(at: 2_000) {
                ($0.tally.expected, $0.tally.packets, $0.tally.bytes) = (1_000, 990, 2_500_000)
                ($0.tally.repaired, $0.tally.duplicates, $0.tally.reordered) = (3, 2, 1)
                $0.tally.latency.add(9_000_000)
                $0.tally.latency.add(1_000_000)
                ($0.earlier.packets, $0.earlier.expected) = (10, 10)
                $0.stalled = 4
            })
        let media = interval.media(interval.tally)
        #expect(media.packets == 990 && media.lost == 10 && media.lossPercent == 1)
        #expect(media.packetsPerSecond == 495 && media.megabitsPerSecond == 10)
        #expect(media.repaired == 3 && media.duplicates == 2 && media.reordered == 1)
        // Those that stand still now, not those that did before.
        #expect(media.stalled == 4)
        // The packet from before the interval is not one of it.
        let latency = media.latency?.maximum ?? 0
        #expect(media.latency?.count == 1 && abs(latency - 1) < 0.02 && media.jitter == nil)
        let earlier = interval.media(interval.earlier)
        #expect(earlier.packets == 10 && earlier.lossPercent == 0 && earlier.latency == nil)
    }

    @Test func `tells what this tool lost in it`() {
        let interval = Interval(
            from: mark(at: 0) { ($0.tally.droppedByKernel, $0.tally.unsent) = (5, 1) },
            to: mark(at: 1_000) { ($0.tally.droppedByKernel, $0.tally.unsent) = (7, .max) })
        let use = interval.generatorUse(isPinned: true)
        #expect(use.overflowed == 2 && use.unsent == .max && use.isPinned && use.isPeak == nil)
    }
}

@Suite struct `The load of this tool` {
    private func load(
        at milliseconds: Int64, _ threads: [String: (ran: Int64, waited: Int64)] = [:], process: Int64 = 0
    ) -> OwnLoad {
        OwnLoad(
            time: time(milliseconds),
            threads: threads.mapValues {
                ProcessFiles.ThreadTime(ran: $0.ran * 1_000_000, waited: $0.waited * 1_000_000)
            }, processNanoseconds: process * 1_000_000)
    }

    @Test func `is that of the threads that were there all the time, in order`() {
        let before = load(at: 1_000, ["b": (100, 0), "a": (0, 50), "gone": (1, 1)], process: 500)
        let after = load(at: 3_000, ["b": (1_100, 0), "a": (500, 550), "new": (900, 0)], process: 2_500)
        let use = after.use(since: before, processors: 4)
        #expect(use.threads.map(\.name) == ["a", "b"])
        #expect(use.threads.map(\.busy) == [0.25, 0.5] && use.threads.map(\.waiting) == [0.25, 0])
        #expect(use.cpuSeconds == 2 && use.processorShare == 0.25 && use.busiest == 0.5)
    }

    @Test func `is finite, however short the time and few the CPUs`() {
        let before = load(at: 1_000, ["a": (0, 0)])
        let use = load(at: 1_000, ["a": (1, 0)], process: 1).use(since: before, processors: 0)
        #expect(use.threads.map(\.busy) == [1] && use.processorShare == 1)
    }

    @Test func `is that of the process where its threads are idle`() {
        let use = load(at: 1_000, ["a": (10, 0)], process: 1_600).use(
            since: load(at: 0, ["a": (0, 0)]), processors: 2)
        #expect(use.threads.map(\.busy) == [0.01] && use.busiest == 0.8)
    }

    /// The share of a CPU that one thread used in each 100 ms.
    private func busiest(_ shares: [Int64]) -> Double? {
        var moment = BusiestMoment(processors: 8)
        var ran: Int64 = 0
        moment.add(load(at: 0, ["a": (0, 0)]))
        for (index, share) in shares.enumerated() {
            ran += share
            moment.add(load(at: Int64(index + 1) * 100, ["a": (ran, 0)]))
        }
        return moment.use?.busiest
    }

    @Test func `at its highest is that of three tenths of a second in a row`() {
        #expect(busiest([90, 90]) == nil)
        #expect(busiest([0, 0, 0]) == 0)
        #expect(busiest([90, 0, 0, 0, 60, 60, 60, 0, 30]) == 0.6)
        // Falls back, and does not count again.
        #expect(busiest([75, 75, 75, 0, 0, 0, 30, 30, 30]) == 0.75)
    }

    @Test func `after a pause of the machine is that of the whole pause`() {
        var moment = BusiestMoment(processors: 8)
        moment.add(load(at: 0, ["a": (0, 0)]))
        moment.add(load(at: 4_000, ["a": (1_000, 0)]))
        #expect(moment.use?.busiest == 0.25)
        // Later samples are compared with those since, not with the pause.
        moment.add(load(at: 4_100, ["a": (1_100, 0)]))
        moment.add(load(at: 4_400, ["a": (1_400, 0)]))
        #expect(moment.use?.busiest == 1)
    }
}
