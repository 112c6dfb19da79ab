import Base
import Peer
import TestSupport
import Testing

@Suite struct `Packet groups` {
    private var groups = PacketGroups()

    private mutating func add(_ sent: Int64, _ arrival: Int64, size: Int = 1_000) -> PacketGroups.Head? {
        groups.add(sent: at(sent), size: size, arrival: arrival &* 1_000_000)
    }

    @Test mutating func `are measured by the first packet of a burst`() {
        #expect(add(0, 500) == nil)
        #expect(add(0, 510) == nil)
        #expect(add(4, 520) == nil)
        let head = add(33, 540, size: 300)
        #expect(
            head
                == PacketGroups.Head(
                    sent: 33, arrival: 40, sentGap: 33, arrivalGap: 40, load: 3_000, served: 2_300))
        #expect(groups.train == PacketGroups.Train(bytes: 2_000, spread: 20))
    }

    /// What lies between is thought to have come.
    @Test mutating func `packets without feedback count toward the load of their group`() {
        _ = add(0, 0)
        let head = groups.add(sent: at(40), size: 1_000, arrival: 60_000_000, untold: 7_000)
        #expect(head?.load == 8_000 && head?.served == 8_000)
        _ = groups.add(sent: at(42), size: 1_000, arrival: 70_000_000, untold: 500)
        #expect(add(80, 100)?.load == 2_500)
    }

    @Test mutating func `packets sent before a group are left out`() {
        _ = add(100, 100)
        #expect(add(200, 200) != nil)
        #expect(add(150, 190) == nil)
        #expect(add(300, 300)?.load == 1_000)
    }

    @Test mutating func `the spread of an incoming group leaves out its longest pause`() {
        _ = add(0, 0)
        #expect(groups.incoming == nil)
        for step in Int64(1)...10 { _ = add(0, step * 10 + (step > 5 ? 200 : 0)) }
        #expect(groups.incoming?.bytes == 10_000)
        #expect(groups.incoming?.spread == 90)
    }
}

@Suite struct `A queue's delay` {
    private var queue = QueueDelay()
    private var sent = 0.0

    /// A group of so many bytes that left 33 ms ago, and the delay of the head after it against the one before.
    private mutating func step(_ change: Double, load: Int = 4_000, rate: Double = 2_000_000) -> Bool {
        sent += 33
        return queue.receive(
            PacketGroups.Head(
                sent: sent, arrival: 0, sentGap: 33, arrivalGap: 33 + change, load: load, served: load),
            rate: rate)
    }

    @Test mutating func `is what exceeds the shortest delay`() {
        _ = step(-20)
        _ = step(50)
        #expect(queue.total == 50)
        _ = step(-60)
        #expect(queue.total == 0)
    }

    @Test mutating func `the delay of a key frame is explained until it has drained`() {
        for _ in 0..<10 { _ = step(0) }
        // 40 kB take 160 ms at 2 Mbit/s.
        _ = step(127, load: 40_000)
        #expect(queue.total == 127)
        #expect(queue.unexplained < 1)
        for _ in 0..<6 {
            _ = step(-17)
            #expect(queue.unexplained < 1)
        }
    }

    @Test mutating func `a delay that grows with equal frames is not explained`() {
        for _ in 0..<10 { _ = step(0) }
        for _ in 0..<5 { _ = step(50) }
        #expect(queue.unexplained > 240)
    }

    @Test mutating func `forgets a shorter path after 20 s`() {
        _ = step(0)
        _ = step(100)
        for _ in 0..<700 { _ = step(0) }
        #expect(queue.total == 0)
    }

    @Test mutating func `refuses a jump of the clock`() {
        let isTaken = step(1e12)
        #expect(!isTaken)
    }
}

@Suite struct `An overuse detector` {
    private var detector = OveruseDetector()
    private var time = 0.0

    private mutating func meet(_ queue: Double, noise: Double = 1) {
        time += 20
        detector.receive(sent: time, arrival: time + queue, queue: queue, noise: noise)
    }

    @Test mutating func `sees a sudden fall in three heads`() {
        for _ in 0..<50 { meet(0) }
        for queue in [40.0, 80, 120] { meet(queue) }
        #expect(detector.usage == .over)
        #expect(detector.standing == 40)
    }

    @Test mutating func `sees a slow growth within a second`() {
        for _ in 0..<50 { meet(0) }
        var steps = 0
        while detector.usage != .over, steps < 100 {
            steps += 1
            meet(Double(steps))
        }
        #expect(steps < 50)
    }

    @Test mutating func `sees a queue that does not drain`() {
        for _ in 0..<50 { meet(0) }
        var steps = 0
        while detector.usage != .over, steps < 100 {
            steps += 1
            meet(min(Double(steps) * 4, 40))
        }
        #expect(steps < 30)
    }

    @Test mutating func `does not take a moment without any packets for a queue`() {
        for _ in 0..<50 { meet(0) }
        // All that was sent in 200 ms comes at once.
        for late in stride(from: 200.0, through: 0, by: -20) {
            meet(late)
            #expect(detector.usage != .over)
        }
    }

    @Test(arguments: 1...5) mutating func `does not take jitter for a queue`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var overuses = 0
        for _ in 0..<3_000 {
            meet(Double.random(in: -15...15, using: &random), noise: 10)
            if detector.usage == .over { overuses += 1 }
        }
        #expect(overuses == 0)
    }
}

@Suite struct `A service rate` {
    private var service = ServiceRate()

    private mutating func serve(_ bytes: Int, in milliseconds: Double, isBusy: Bool = true) {
        service.receive(
            PacketGroups.Head(
                sent: 0, arrival: 0, sentGap: 0, arrivalGap: milliseconds, load: bytes, served: bytes),
            isBusy: isBusy, noise: 1)
    }

    @Test mutating func `is that of a busy link`() {
        for _ in 0..<4 { serve(3_000, in: 40) }
        #expect(service.bitrate == 600_000)
    }

    @Test mutating func `goes by the last 300 ms`() {
        for _ in 0..<10 { serve(12_500, in: 40) }
        for _ in 0..<8 { serve(3_000, in: 40) }
        #expect(service.bitrate == 600_000)
    }

    @Test mutating func `is not known of an idle link, nor of too short a time`() {
        serve(3_000, in: 40)
        #expect(service.bitrate == nil)
        for _ in 0..<4 { serve(3_000, in: 40) }
        serve(3_000, in: 40, isBusy: false)
        #expect(service.bitrate == nil)
    }

    @Test mutating func `leaves out a moment in which the link stood still`() {
        for _ in 0..<5 { serve(3_000, in: 12) }
        serve(3_000, in: 250)
        #expect(service.bitrate == 2_000_000)
    }
}

@Suite struct `A delay-based rate` {
    private var control = DelayBasedRate(start: 2_000_000, minimum: 50_000, maximum: 10_000_000)

    private mutating func grow(_ milliseconds: Range<Int64>, acknowledged: Double, isEmpty: Bool = true) {
        for time in stride(from: milliseconds.lowerBound, to: milliseconds.upperBound, by: 50) {
            control.grow(
                acknowledged: acknowledged, isDrained: true, isEmpty: isEmpty,
                roundTrip: .milliseconds(50), at: at(time))
        }
    }

    @Test mutating func `falls below what the full link served, however often it is told`() {
        for time in Int64(0)..<5 { control.decrease(served: 600_000, queue: 100, at: at(time * 50)) }
        #expect(control.rate == 510_000)
        #expect(control.isLimited)
    }

    @Test mutating func `falls little where little queues`() {
        control.decrease(served: 1_900_000, queue: 30, at: at(0))
        #expect(control.rate == 0.92 * 1_900_000)
    }

    @Test mutating func `returns to what the link served once the queue has drained`() {
        control.decrease(served: 600_000, queue: 100, at: at(0))
        grow(100..<150, acknowledged: 500_000)
        #expect(abs(control.rate - 576_000) < 5_000)
    }

    @Test mutating func `grows slowly near the capacity and faster far from it`() {
        control.decrease(served: 1_000_000, queue: 100, at: at(0))
        grow(0..<2_000, acknowledged: 960_000)
        #expect((990_000...1_040_000).contains(control.rate))
        let far = control
        control = DelayBasedRate(start: 1_000_000, minimum: 50_000, maximum: 10_000_000)
        grow(0..<2_050, acknowledged: 1_000_000)
        #expect((1_150_000...1_180_000).contains(control.rate))
        #expect(far.rate < control.rate)
    }

    @Test mutating func `does not grow beyond what is proven, nor fall for that`() {
        grow(0..<60_000, acknowledged: 500_000)
        #expect(control.rate == 2_000_000)
        grow(60_000..<120_000, acknowledged: 1_800_000)
        #expect(control.rate == 1.2 * 1_800_000)
    }

    @Test mutating func `takes what is sent without a queue for proven`() {
        grow(0..<50, acknowledged: 4_000_000, isEmpty: false)
        #expect(control.rate == 2_000_000)
        grow(50..<100, acknowledged: 4_000_000)
        #expect(control.rate >= 3_800_000)
    }

    @Test mutating func `keeps its limits`() {
        control.raise(to: 1e15)
        #expect(control.rate == 10_000_000)
        control.decrease(served: 1, queue: 1_000, at: at(0))
        #expect(control.rate == 50_000)
        control.lower(to: 0)
        #expect(control.rate == 50_000)
    }
}
