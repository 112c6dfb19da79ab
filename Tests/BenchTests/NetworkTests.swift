import Base
import Foundation
import Testing

@testable import sfu_bench

@Suite struct `A link that is impaired` {
    private let start = MonotonicTime(nanoseconds: 5_000_000_000)
    private let server = TransportAddress(ip: .loopback, port: 7_000)

    private func at(_ seconds: Double) -> MonotonicTime {
        start.advanced(byNanoseconds: Int64((seconds * 1e9).rounded()))
    }

    private func profile(
        _ steps: [(Double, Int)], roundTrip: Double = 0, jitter: Double = 0, loss: Double = 0,
        queue: Double = 300
    ) -> NetworkProfile {
        NetworkProfile(
            name: "test", summary: "a test", seconds: 10,
            steps: steps.map { NetworkProfile.Step(start: $0.0, capacity: $0.1) }, roundTrip: roundTrip,
            jitter: jitter, loss: loss, queue: queue)
    }

    /// Sends 972 bytes, a thousand with headers, so often a second, and takes what is through.
    private func send(_ perSecond: Int, from: Double, until end: Double, over link: inout ImpairedLink) -> Int
    {
        var taken = 0
        for number in 0..<Int((end - from) * Double(perSecond)) {
            let time = at(from + Double(number) / Double(perSecond))
            link.append([UInt8](repeating: 1, count: 972), from: server, at: time)
            while link.take(at: time) != nil { taken += 1 }
        }
        return taken
    }

    @Test func `passes what it takes, as late as it says`() throws {
        var link = ImpairedLink(profile([(0, 1_000_000)], roundTrip: 100), at: start)
        link.append([UInt8](repeating: 1, count: 972), from: server, at: start)
        #expect(link.next == at(0.108))
        #expect(link.take(at: at(0.107)) == nil)
        #expect(link.take(at: at(0.108))?.bytes.count == 972)
        #expect(link.next == nil)
    }

    @Test func `drops what would wait too long`() {
        var link = ImpairedLink(profile([(0, 1_000_000)]), at: start)
        let taken = send(250, from: 0, until: 4, over: &link)
        let account = link.takeAccount()
        // Of two megabits a second one gets through, but for what waits.
        #expect((440...500).contains(taken))
        #expect(account.overflowed > 400)
        #expect((290...300).contains(account.longestWait))
        #expect(account.offered == 1_000_000)
    }

    @Test func `changes what it takes in the midst of a packet`() {
        var link = ImpairedLink(profile([(0, 1_000), (1, 1_000_000)]), at: start)
        link.append([UInt8](repeating: 1, count: 972), from: server, at: start)
        // A thousand of eight thousand bits in the first second, the rest in seven milliseconds.
        #expect(link.next == at(1.007))
    }

    @Test func `lets nothing through in a gap`() {
        var link = ImpairedLink(profile([(0, 0), (2, 1_000_000)]), at: start)
        link.append([UInt8](repeating: 1, count: 972), from: server, at: start)
        #expect((link.next ?? start) >= at(2))
    }

    @Test func `loses by chance as much as it says, and keeps the order`() {
        var link = ImpairedLink(profile([(0, 10_000_000)], jitter: 20, loss: 0.1), at: start)
        var last = start
        for number in 0..<2_000 {
            link.append([0], from: server, at: at(Double(number) / 1_000))
            while let next = link.next, let delivery = link.take(at: next) {
                #expect(delivery.time >= last)
                last = delivery.time
            }
        }
        #expect((150...250).contains(link.takeAccount().lost))
    }
}

@Suite struct `Network profiles` {
    @Test(arguments: NetworkProfile.all.map(\.name)) func `make sense`(name: String) throws {
        let profile = try #require(NetworkProfile.named(name))
        #expect(profile.steps.first?.start == 0)
        #expect(profile.steps.map(\.start) == profile.steps.map(\.start).sorted())
        #expect(
            profile.steps.allSatisfy { $0.start < profile.seconds && (0...10_000_000).contains($0.capacity) })
    }

    @Test func `have names of their own, and are the same each time`() {
        #expect(Set(NetworkProfile.all.map(\.name)).count == NetworkProfile.all.count)
        #expect(NetworkProfile.named("rfc8867-5.1")?.capacity(at: 59.9) == 2_500_000)
        #expect(NetworkProfile.named("train")?.capacity(at: 28) == 0)
    }

    @Test func `are chosen on the command line`() throws {
        let outcome = try CommandLineParser.parse([
            "network", "--profile", "lte,train", "--reports-only",
        ])
        guard case .run(let options) = outcome else { throw UsageError("no run") }
        #expect(options.network.profiles.map(\.name) == ["lte", "train"])
        #expect(options.network.feedback == .reports)
        #expect(options.media.layers == 3)
        #expect(throws: UsageError.self) { try CommandLineParser.parse(["network", "--profile", "moon"]) }
        #expect(throws: UsageError.self) { try CommandLineParser.parse(["load", "--profile", "lte"]) }
        #expect(throws: UsageError.self) { try CommandLineParser.parse(["network", "--viewers", "3"]) }
    }
}

@Suite struct `A report on networks` {
    private func found() throws -> NetworkReport {
        let profile = try #require(NetworkProfile.named("rfc8867-5.1"))
        let began = MonotonicTime(nanoseconds: 1_000_000_000)
        var report = NetworkReport(
            layers: [.init(height: 720, bitrate: 2_000_000), .init(height: 360, bitrate: 666_666)],
            feedback: "transport-cc")
        var record = NetworkRecorder.Record()
        for number in 1...50 {
            record.samples.append(
                .init(
                    seconds: Double(number) * 0.2, capacity: 1_000_000, sent: 800_000, delivered: 750_000,
                    estimate: 900_000, delay: 120, height: number > 25 ? 360 : 720, overflowed: 1))
            record.lateness.append(0)
        }
        // Ten a second for five seconds, and then no more.
        for number in 0..<50 {
            record.frames.append(began.advanced(byNanoseconds: Int64(number) * 100_000_000))
        }
        (record.soundPackets, record.soundExpected) = (450, 500)
        #expect(report.add(record, of: profile, began: began, end: 10) == nil)
        return report
    }

    @Test func `tells shares of the time`() throws {
        let run = try #require(found().runs.first)
        #expect(run.best == 0.5)
        #expect(abs(run.frozen - 0.51) < 0.001)
        #expect(abs(run.soundLost - 0.1) < 0.001)
        #expect(run.use == 0.75)
        #expect(run.changes == 1)
        #expect(run.overflowed == 50)
        #expect(run.queue?.p50 == 20)
    }

    @Test func `is written as text, JSON and a page`() throws {
        var report = `A report`.sample
        report.network = try found()
        let text = TextReport.text(report)
        #expect(text.contains("rfc8867-5.1") && text.contains("50.0 %"))
        let copy = try JSONDecoder().decode(Report.self, from: JSONReport.data(report))
        #expect(copy == report)
        let page = HTMLReport.page(report)
        #expect(page.contains("capacity") && page.contains("estimate") && page.contains("</html>"))
        #expect(page.components(separatedBy: "<svg").count == 4)
    }

    @Test func `says where packets were read late`() throws {
        var report = try found()
        let profile = try #require(NetworkProfile.named("lte"))
        var record = NetworkRecorder.Record()
        record.lateness = Array(repeating: 50, count: 20)
        let reason = report.add(record, of: profile, began: .zero, end: 4)
        #expect(reason?.contains("20 of 20") == true)
    }
}
