import Base
import Peer
import Testing

@Suite struct `A probe's measurement` {
    private var measurement = ProbeMeasurement(
        Probe(number: 3, bitrate: 2_000_000, bytes: 6_000), target: 2_000_000)

    /// Packets of 1,200 bytes that leave each so many milliseconds and come each so many.
    private mutating func run(sent: Double = 4.8, came: Double?, lost: Set<Int> = [], number: UInt8 = 3) {
        for index in 0..<5 {
            let arrival = came.map { Int64(Double(index) * $0 * 1e6) + 77 }
            measurement.receive(
                PacketOutcome(
                    sent: MonotonicTime(nanoseconds: Int64(Double(index) * sent * 1e6)), size: 1_200,
                    arrival: lost.contains(index) ? nil : arrival, probe: number),
                size: 1_200)
        }
    }

    @Test mutating func `passes at the rate of sending`() throws {
        run(came: 4.8)
        #expect(measurement.isComplete)
        guard case .passed(let rate) = measurement.result else {
            Issue.record("\(measurement.result)")
            return
        }
        #expect(abs(rate - 2_000_000) < 1_000)
    }

    @Test mutating func `finds the rate of a slower path`() {
        run(came: 16)
        guard case .saturated(let rate) = measurement.result else {
            Issue.record("\(measurement.result)")
            return
        }
        #expect(abs(rate - 570_000) < 1_000)
    }

    @Test mutating func `bears one lost packet of five, but not two`() {
        run(came: 4.8, lost: [2])
        #expect(!measurement.isComplete)
        #expect(measurement.result != .invalid)
        measurement = ProbeMeasurement(measurement.probe, target: 2_000_000)
        run(came: 4.8, lost: [2, 3])
        #expect(measurement.result == .invalid)
    }

    @Test mutating func `counts what else left in between`() {
        for index in 0..<9 {
            measurement.receive(
                PacketOutcome(
                    sent: at(Int64(index) * 5), size: 1_200, arrival: Int64(index) * 5_000_000,
                    probe: index % 2 == 0 ? 3 : nil),
                size: 1_200)
        }
        guard case .passed(let rate) = measurement.result else {
            Issue.record("\(measurement.result)")
            return
        }
        #expect(abs(rate - 1_920_000) < 1_000)
    }

    @Test mutating func `does not believe times that no link makes`() {
        run(came: 0)
        #expect(measurement.result == .invalid)
        measurement = ProbeMeasurement(measurement.probe, target: 2_000_000)
        run(came: 0.5)
        #expect(measurement.result == .invalid)
        measurement = ProbeMeasurement(measurement.probe, target: 2_000_000)
        run(came: -5)
        #expect(measurement.result == .invalid)
        measurement = ProbeMeasurement(measurement.probe, target: 2_000_000)
        run(came: 4.8, number: 4)
        #expect(measurement.result == .invalid)
    }
}

@Suite struct `A probe controller` {
    private var probes = ProbeController(maximum: 10_000_000)

    private mutating func due(_ time: Int64, estimate: Double = 1_000_000, isSilent: Bool = false) -> Probe? {
        probes.due(
            estimate: estimate, sending: 500_000, spread: 0.002, roundTrip: .milliseconds(50),
            isSilent: isSilent, at: at(time))
    }

    /// Lets a probe come through at a rate.
    private mutating func come(_ probe: Probe, from time: Int64, at rate: Double) {
        let number = (probe.bytes + 1_199) / 1_200
        for index in 0..<number {
            let gap = 9.6e12 / Double(probe.bitrate)
            probes.receive(
                PacketOutcome(
                    sent: at(time).advanced(byNanoseconds: Int64(Double(index) * gap)), size: 1_200,
                    arrival: Int64(Double(index) * 9.6e12 / rate), probe: probe.number),
                size: 1_200, at: at(time + 100))
        }
    }

    /// When probes are due in so many seconds, each of which fails at once.
    private mutating func failures(from start: Int64, seconds: Int64) -> [Int64] {
        var times: [Int64] = []
        for time in stride(from: start, to: start + seconds * 1_000, by: 100) {
            guard let probe = due(time) else { continue }
            times.append(time)
            come(probe, from: time, at: 600_000)
        }
        return times
    }

    @Test mutating func `probes nothing while nothing is wanted`() {
        #expect(due(0) == nil)
        #expect(probes.deadline(estimate: 1) == nil)
        probes.want(800_000)
        #expect(due(100) == nil)
        #expect(probes.deadline(estimate: 1_000_000) == nil)
    }

    @Test mutating func `begins at once, with some room and no more than three times the estimate`() {
        probes.want(2_000_000)
        #expect(probes.deadline(estimate: 1_000_000).map { $0 <= at(0) } == true)
        #expect(due(0) == Probe(number: 1, bitrate: 2_300_000, bytes: 6_000))
        #expect(due(10) == nil)
        probes = ProbeController(maximum: 10_000_000)
        probes.want(8_000_000)
        #expect(due(0) == Probe(number: 1, bitrate: 3_000_000, bytes: 7_500))
    }

    @Test mutating func `goes on after a success`() throws {
        probes.want(8_000_000)
        let probe = try #require(due(0))
        come(probe, from: 0, at: 9_000_000)
        #expect(probes.takeResult() != nil)
        #expect(probes.takeResult() == nil)
        #expect(due(100, estimate: 3_000_000)?.bitrate == 9_000_000)
    }

    @Test mutating func `waits longer after each failure`() {
        probes.want(2_000_000)
        let times = failures(from: 0, seconds: 130)
        let pauses = zip(times, times.dropFirst()).map { $1 - $0 }
        #expect(pauses.map { ($0 + 500) / 1_000 } == [1, 2, 4, 8, 16, 30, 30, 30])
    }

    @Test mutating func `tries what may be all that is missing for a picture every four seconds`() {
        probes.want(500_000)
        var times: [Int64] = []
        for time in stride(from: 0 as Int64, to: 30_000, by: 100) {
            guard let probe = due(time, estimate: 100_000) else { continue }
            times.append(time)
            come(probe, from: time, at: 90_000)
        }
        let pauses = zip(times, times.dropFirst()).map { $1 - $0 }
        #expect(pauses.map { ($0 + 500) / 1_000 } == [1, 2, 4, 4, 4, 4, 4, 4], "\(times)")
    }

    @Test mutating func `a smaller probe than the failed one goes out at once, a larger one waits`() {
        probes.want(2_000_000)
        _ = failures(from: 0, seconds: 20)
        probes.want(4_000_000)
        #expect(due(21_000) == nil)
        probes.want(1_200_000)
        #expect(due(21_000)?.bitrate == 1_380_000)
    }

    @Test mutating func `begins afresh when the network has changed`() {
        probes.want(2_000_000)
        _ = failures(from: 0, seconds: 20)
        #expect(due(21_000) == nil)
        probes.startAfresh(at: at(21_000))
        #expect(due(21_000) != nil)
    }

    @Test mutating func `after a fall, most of the lost rate is probed once, soon`() throws {
        probes.want(5_000_000)
        probes.fell(from: 4_000_000, to: 1_500_000, at: at(1_000))
        #expect(due(1_900, estimate: 1_500_000) == nil)
        let probe = try #require(due(2_000, estimate: 1_500_000))
        #expect(probe.bitrate == 3_400_000)
        come(probe, from: 2_000, at: 1_500_000)
        #expect(due(3_100, estimate: 1_500_000)?.bitrate == 4_500_000)
    }

    @Test mutating func `short probes are no longer trusted when the rate fell again at once`() throws {
        probes.want(2_000_000)
        come(try #require(due(0)), from: 0, at: 9_000_000)
        #expect(probes.takeResult() != nil)
        probes.fell(from: 2_300_000, to: 900_000, at: at(1_000))
        #expect(due(1_900) == nil)
        // A short one, whose result is kept, and a long one that leaves together with what is sent anyway.
        come(try #require(due(2_000)), from: 2_000, at: 9_000_000)
        #expect(probes.takeResult() == nil)
        let proof = try #require(due(2_200))
        #expect(proof == Probe(number: 3, bitrate: 1_500_000, bytes: 28_125))
        come(proof, from: 2_200, at: 2_000_000)
        #expect(probes.takeResult() != nil)
        // It lasts: a short one is believed again.
        come(try #require(due(7_000, estimate: 1_800_000)), from: 7_000, at: 9_000_000)
        #expect(probes.takeResult() != nil)
    }

    @Test mutating func `waits longer each time that a rate falls again at once`() throws {
        probes.want(2_000_000)
        var time: Int64 = 0
        for (pause, number) in [(Int64(1_000), 1), (2_000, 2), (4_000, 2)] {
            for _ in 0..<number {
                come(try #require(due(time)), from: time, at: 2_500_000)
                time += 200
            }
            time += 800
            probes.fell(from: 2_300_000, to: 900_000, at: at(time))
            #expect(due(time + pause - 100) == nil)
            #expect(probes.deadline(estimate: 1_000_000) == at(time + pause))
            time += pause
        }
    }

    @Test mutating func `a probe without feedback is given up, and the next one follows soon`() {
        probes.want(2_000_000)
        var times: [Int64] = []
        for time in stride(from: Int64(0), to: 60_000, by: 100) where due(time, isSilent: true) != nil {
            times.append(time)
        }
        #expect(times.count >= 13)
    }
}

@Suite struct `A train rate` {
    private var trains = TrainRate()

    @Test mutating func `shows once that a path has become faster since a probe failed`() {
        for _ in 0..<10 { trains.receive(PacketGroups.Train(bytes: 6_000, spread: 80)) }
        #expect(trains.hasRisen() == false)
        trains.mark()
        for _ in 0..<20 { trains.receive(PacketGroups.Train(bytes: 6_000, spread: 75)) }
        #expect(trains.hasRisen() == false)
        for _ in 0..<20 { trains.receive(PacketGroups.Train(bytes: 6_000, spread: 20)) }
        #expect(trains.hasRisen() == true)
        #expect(trains.hasRisen() == false)
    }
}
