import Base
import Testing

@testable import sfu_bench

@Suite struct `An emulated link` {
    private let start = MonotonicTime(nanoseconds: 7_000_000_000)
    private let server = TransportAddress(ip: .loopback, port: 7_000)

    private func at(_ seconds: Double) -> MonotonicTime {
        start.advanced(byNanoseconds: Int64((seconds * 1e9).rounded()))
    }

    private func emulated(
        _ steps: [(Double, Int)] = [(0, 1_000_000)], roundTrip: Double = 0, jitter: Double = 0,
        loss: Double = 0, queue: Double = 300, seed: UInt64 = 1
    ) -> ImpairedLink {
        ImpairedLink(
            NetworkProfile(
                name: "test", summary: "a test", seconds: 10,
                steps: steps.map { NetworkProfile.Step(start: $0.0, capacity: $0.1) }, roundTrip: roundTrip,
                jitter: jitter, loss: loss, queue: queue), seed: seed, at: start)
    }

    /// A thousand bytes with headers, which a megabit a second transmits in 8 ms.
    private static let thousand = [UInt8](repeating: 1, count: 972)

    /// Sends 500 datagrams, one every 4 ms, and takes what comes out.
    /// - Returns: the number of each that came, and when.
    private func trace(_ given: ImpairedLink) -> [[Int64]] {
        var link = given
        var came: [[Int64]] = []
        for number in 0..<500 {
            let now = at(Double(number) * 0.004)
            link.append([UInt8(number >> 8), UInt8(number & 0xFF)], from: server, at: now)
            while let delivery = link.take(at: now) {
                let name = Int64(delivery.bytes[0]) << 8 | Int64(delivery.bytes[1])
                came.append([name, delivery.time.nanoseconds])
            }
        }
        return came
    }

    @Test func `does the same again from the same seed, and something else from another`() {
        let first = trace(emulated(jitter: 20, loss: 0.2, seed: 5))
        #expect(first == trace(emulated(jitter: 20, loss: 0.2, seed: 5)))
        #expect(first != trace(emulated(jitter: 20, loss: 0.2, seed: 6)))
        // Without chance the seed does not matter.
        #expect(trace(emulated(seed: 5)) == trace(emulated(seed: 6)))
    }

    @Test func `delays at random, within bounds and in order`() {
        let plain = trace(emulated(roundTrip: 50))
        let jittery = trace(emulated(roundTrip: 50, jitter: 20))
        #expect(plain.map { $0[0] }.starts(with: jittery.map { $0[0] }))
        let delays = zip(plain, jittery).map { $1[1] - $0[1] }
        #expect(delays.allSatisfy { (0...20_000_001).contains($0) })
        #expect((delays.max() ?? 0) > 15_000_000)
        #expect(Set(delays).count > 50)
        let times = jittery.map { $0[1] }
        #expect(times == times.sorted())
    }

    @Test func `takes what waits as long as it may, and nothing that would wait longer`() {
        var link = emulated(queue: 16)
        for _ in 0..<4 { link.append(Self.thousand, from: server, at: start) }
        // They wait 0, 8, 16 and 24 ms.
        var account = link.takeAccount()
        #expect(account == .init(offered: 4_000, overflowed: 1, longestWait: 16))
        while link.take(at: at(1)) != nil {}
        account = link.takeAccount()
        #expect(account == .init(delivered: 3_000))
        account = link.takeAccount()
        #expect(account == .init())
        // What was dropped has not used the link.
        link.append(Self.thousand, from: server, at: at(0.024))
        #expect(link.next == at(0.032))
    }

    @Test(arguments: 0..<50) func `has the same limit at any time`(tenths: Int) {
        var link = emulated(queue: 16)
        for _ in 0..<4 { link.append(Self.thousand, from: server, at: at(Double(tenths) / 10)) }
        let account = link.takeAccount()
        #expect(account == .init(offered: 4_000, overflowed: 1, longestWait: 16))
    }

    @Test func `is used by what is lost behind its queue`() {
        var link = emulated(loss: 1, queue: 5)
        link.append(Self.thousand, from: server, at: start)
        link.append(Self.thousand, from: server, at: start)
        #expect(link.next == nil)
        var account = link.takeAccount()
        #expect(account == .init(offered: 2_000, overflowed: 1, lost: 1))
        link.append(Self.thousand, from: server, at: at(0.008))
        account = link.takeAccount()
        #expect(account == .init(offered: 1_000, lost: 1))
    }

    @Test func `has a limit in memory, whatever its profile says`() {
        var link = emulated([(0, 1_000_000_000)], queue: .infinity)
        for _ in 0..<20_003 { link.append([], from: server, at: start) }
        var account = link.takeAccount()
        #expect(account.overflowed == 3 && account.offered == 20_003 * 28)
        let taken = link.take(at: at(1))
        #expect(taken != nil)
        for _ in 0..<2 { link.append([], from: server, at: start) }
        account = link.takeAccount()
        #expect(account.overflowed == 1)
    }

    @Test func `keeps the order of many, taken now and then`() {
        var link = emulated([(0, 100_000_000)], queue: .infinity)
        var taken: [Int] = []
        for number in 0..<5_000 {
            link.append([UInt8(number >> 8), UInt8(number & 0xFF)], from: server, at: start)
            // Two of three are taken at once.
            guard number % 3 > 0, let next = link.next, let delivery = link.take(at: next) else { continue }
            taken.append(Int(delivery.bytes[0]) << 8 | Int(delivery.bytes[1]))
        }
        while let delivery = link.take(at: at(10)) {
            taken.append(Int(delivery.bytes[0]) << 8 | Int(delivery.bytes[1]))
        }
        #expect(taken == Array(0..<5_000))
    }

    @Test func `stops in the midst of a packet when a gap begins`() throws {
        var link = emulated([(0, 1_000_000), (1, 0), (3, 1_000_000)])
        link.append(Self.thousand, from: server, at: at(0.996))
        let end = try #require(link.next).nanoseconds(since: start)
        // Half of it before the gap, half behind it.
        #expect(abs(end - 3_004_000_000) < 1_000)
    }

    @Test func `goes on as at its end, and never stops for good`() {
        var last = emulated([(0, 1_000), (1, 2_000_000)])
        last.append(Self.thousand, from: server, at: at(500))
        #expect(last.next == at(500.004))
        var gap = emulated([(0, 1_000_000), (1, 0)])
        gap.append(Self.thousand, from: server, at: at(2))
        #expect(gap.next == at(10))
        var none = emulated([])
        none.append(Self.thousand, from: server, at: at(0))
        #expect(none.next == at(8))
    }

    @Test func `hands out nothing before its time`() {
        var link = emulated(roundTrip: 100)
        var delivery = link.take(at: at(1_000))
        #expect(delivery == nil && link.next == nil)
        link.append(Self.thousand, from: server, at: start)
        delivery = link.take(at: at(0.108).advanced(byNanoseconds: -1))
        #expect(delivery == nil)
        delivery = link.take(at: at(0.108))
        #expect(delivery?.time == at(0.108) && delivery?.source == server)
    }
}

@Suite struct `A recorder of a network` {
    private static let profile = NetworkProfile(
        name: "test", summary: "a test", seconds: 10,
        steps: [.init(start: 0, capacity: 500_000), .init(start: 1, capacity: 800_000)], roundTrip: 60)

    private let recorder = NetworkRecorder(Self.profile, at: .zero)

    private func note(_ account: ImpairedLink.Account, _ seconds: Double) {
        recorder.note(account, seconds: seconds, height: nil, sound: (9, 10))
    }

    @Test func `knows rates by the time since the previous sample`() throws {
        note(.init(offered: 25_000, delivered: 12_500, overflowed: 2, longestWait: 40), 0.2)
        recorder.setEstimate(700_000)
        note(.init(offered: 25_000, delivered: 25_000), 0.7)
        // Too short for a rate.
        note(.init(offered: 25_000, delivered: 25_000), 0.705)
        recorder.setEstimate(nil)
        note(.init(), 1.2)
        let record = recorder.all
        #expect(record.samples.map(\.sent) == [1_000_000, 400_000, 0, 0])
        #expect(record.samples.map(\.delivered) == [500_000, 400_000, 0, 0])
        #expect(record.samples.map(\.capacity) == [500_000, 500_000, 500_000, 800_000])
        #expect(record.samples.map(\.delay) == [100, 60, 60, 60])
        #expect(record.samples.map(\.estimate) == [nil, 700_000, 700_000, nil])
        #expect(record.samples.map(\.overflowed) == [2, 0, 0, 0])
        #expect(record.soundPackets == 9 && record.soundExpected == 10)
    }

    @Test func `notes the worst lateness of each sample`() {
        recorder.noteLateness(99_000_000)
        #expect(recorder.all.lateness.isEmpty)
        note(.init(), 0.2)
        recorder.noteLateness(3_000_000)
        recorder.noteLateness(1_000_000)
        note(.init(), 0.4)
        recorder.noteLateness(2_000_000)
        #expect(recorder.all.lateness == [3, 2])
    }
}

@Suite struct `A report on a poor network` {
    private static let profile = NetworkProfile(
        name: "test", summary: "a test", seconds: 10, steps: [.init(start: 0, capacity: 1_000_000)],
        roundTrip: 100)
    private static let layers: [NetworkReport.Layer] = [
        .init(height: 720, bitrate: 2_000_000), .init(height: 180, bitrate: 222_222),
    ]

    private func sample(
        _ seconds: Double, capacity: Int = 1_000_000, delivered: Int = 0, height: Int? = nil
    ) -> NetworkRecorder.Sample {
        .init(
            seconds: seconds, capacity: capacity, sent: 0, delivered: delivered, delay: 100, height: height,
            overflowed: 0)
    }

    private func run(
        _ record: NetworkRecorder.Record, layers: [NetworkReport.Layer] = Self.layers, end: Double = 10
    ) throws -> NetworkReport.Run {
        var report = NetworkReport(layers: layers, feedback: "transport-cc")
        let reason = report.add(record, of: Self.profile, began: .zero, end: end)
        #expect(reason == nil)
        return try #require(report.runs.first)
    }

    @Test func `of nothing at all says so`() throws {
        let found = try run(.init())
        #expect(found.firstPicture == nil && found.best == 0 && found.frozen == 1 && found.queue == nil)
        #expect(found.soundLost == 0 && found.use == 0 && found.changes == 0 && found.overflowed == 0)
        #expect(
            NetworkReport.cells(found)
                == ["none", "0.0 %", "100.0 %", "0.0 %", "0 %", "0", "-", "0"])
        #expect(try run(.init(), end: 0).frozen == 0)
        let foreign = try run(.init(), layers: [])
        #expect(foreign.best == nil && NetworkReport.cells(foreign)[1] == "-")
    }

    @Test func `counts a link that no layer fits into for none`() throws {
        var record = NetworkRecorder.Record()
        // The smallest layer needs 307 kbit/s.
        record.samples = [
            sample(0.2, capacity: 200_000), sample(0.4, capacity: 200_000, height: 180),
            sample(0.6, capacity: 310_000, height: 180), sample(0.8, capacity: 310_000, height: 720),
        ]
        #expect(try run(record).best == 0.5)
    }

    @Test func `does not count what came after its end, or more than fits`() throws {
        var record = NetworkRecorder.Record()
        record.samples = [
            sample(9.8, delivered: 500_000), sample(10.5, delivered: 3_000_000), sample(10.6),
        ]
        let found = try run(record)
        #expect(found.samples.count == 2)
        #expect(found.use == 0.75)
        // Without layers the whole link could have been used; with them, no more than the best of them.
        record.samples = [sample(1, capacity: 4_292_000, delivered: 2_146_000)]
        #expect(try run(record).use == 1)
        #expect(try run(record, layers: []).use == 0.5)
    }

    @Test func `finds a picture frozen between frames and behind the last one`() throws {
        var record = NetworkRecorder.Record()
        func frames(_ milliseconds: [Int64]) throws -> NetworkReport.Run {
            record.frames = milliseconds.map { MonotonicTime(nanoseconds: $0 * 1_000_000) }
            return try run(record)
        }
        // From the first frame at 5 s, of five seconds.
        let steady: [Int64] = (50...79).map { $0 * 125 }
        let late = try frames([5_000, 5_125, 6_125] + steady + [9_999])
        #expect(late.firstPicture == 5_000)
        #expect(abs(late.frozen - 0.2) < 0.001)
        #expect(try frames([5_000]).frozen == 1)
        #expect(try frames([10_500]).frozen == 1)
    }

    @Test func `knows no loss of a sound that there is not, or more of`() throws {
        var record = NetworkRecorder.Record()
        #expect(try run(record).soundLost == 0)
        (record.soundPackets, record.soundExpected) = (12, 10)
        #expect(try run(record).soundLost == 0)
        record.soundPackets = 0
        #expect(try run(record).soundLost == 1)
    }

    @Test(arguments: [
        (1, 1, true), (1, 10, true), (2, 10, false), (2, 40, true), (3, 40, false), (20, 20, false),
    ])
    func `tolerates a few late samples`(late: Int, all: Int, isGood: Bool) {
        var record = NetworkRecorder.Record()
        record.lateness = [Double](repeating: 20.1, count: late) + [Double](repeating: 20, count: all - late)
        var report = NetworkReport(layers: [], feedback: "x")
        let reason = report.add(record, of: Self.profile, began: .zero, end: 4)
        #expect((reason == nil) == isGood)
        #expect(report.runs.count == 1)
    }

    @Test func `has columns below each other`() throws {
        var report = NetworkReport(layers: Self.layers, feedback: "reports")
        report.runs = [try run(.init()), try run(.init())]
        report.runs[1].firstPicture = 1_234
        report.runs[1].overflowed = 1_234_567
        let lines = report.lines
        #expect(lines.first == "720p 2.00 Mbit/s, 180p 0.222 Mbit/s, feedback by reports")
        #expect(lines.count == 5 && lines[3].count == lines[4].count && lines[4].hasSuffix(" 1234567"))
    }
}
