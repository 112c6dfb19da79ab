import Base
import Foundation
import Testing

@testable import sfu_bench

private func histogram(of milliseconds: Int64...) -> LogHistogram {
    var result = LogHistogram()
    for value in milliseconds { result.add(value * 1_000_000) }
    return result
}

/// What a report says of the server, from two looks at it.
private let before = ProcessFiles.Usage(processorSeconds: 10, residentBytes: 30_000_000)
private let after = ProcessFiles.Usage(processorSeconds: 15, residentBytes: 50_000_000)

@Suite struct `A report of viewers by HLS` {
    private func fresh(viewers: Int = 4, seconds: Double = 10) -> HLSReport {
        var report = HLSReport(Options(.play), viewers: viewers)
        report.seconds = seconds
        return report
    }

    private func found(_ change: (inout HLSShared.Sums) -> Void = { _ in }) -> HLSShared.Sums {
        var sums = HLSShared.Sums(standing: [0, 0])
        sums.whole.started = 4
        sums.whole.start = histogram(of: 100, 200)
        sums.measured.media = 40
        sums.measured.playlists = 60
        sums.measured.bytes = 12_500_000
        sums.measured.marks.latency = histogram(of: 2_000)
        change(&sums)
        return sums
    }

    @Test func `tells rates of all and of each`() throws {
        var report = fresh()
        report.noteServer("process 1", before, before, after)
        report.conclude(
            found {
                $0.measured.stalls = .init(count: 3, nanoseconds: 2_000_000_000)
                $0.measured.rejoined = 1
                $0.whole.ended = 2
                $0.whole.refusals = ["HTTP 404": 5]
            })
        #expect(report.verdict == Report.Verdict())
        #expect(report.requests.perSecond == 10 && report.requests.perSecondAndViewer == 2.5)
        #expect(report.megabitsPerSecond == 10)
        #expect(report.stalls.seconds == 2 && report.stalls.share == 0.05)
        #expect(report.serverUse?.cores == 0.5 && report.serverUse?.residentBytesPerViewer == 5_000_000)
        for words in [
            "4 of 4, ended for 2", "3 times, 2.00 s in total (5.00 %)", "had to start over", "5 ×",
            "HTTP 404", "10.0, 2.50 per viewer", "60, 40", "10.0 Mbit/s", "0.500 cores, 50.0 MB",
            "glass to glass",
        ] {
            #expect(report.text.contains(words), "\(words)")
        }
        let data = try JSONReport.data(report)
        #expect(try JSONDecoder().decode(HLSReport.self, from: data) == report)
        #expect(String(decoding: data, as: UTF8.self).contains("\"protocol\" : \"hls\""))
    }

    @Test func `measures nothing in no time, and by nobody`() throws {
        var report = fresh(viewers: 0, seconds: 0)
        report.noteServer("process 1", before, before, after)
        report.conclude(HLSShared.Sums(standing: []))
        #expect(report.serverUse == nil && report.requests.perSecond == 0 && report.stalls.share == 0)
        #expect(report.start == nil && report.latency == nil && report.arrival == nil)
        #expect(report.verdict == Report.Verdict())
        #expect(!report.text.contains("nan") && !report.text.contains("inf"))
        let data = try JSONReport.data(report)
        #expect(try JSONDecoder().decode(HLSReport.self, from: data) == report)
        // A server that was not seen before the joins has no growth.
        report.seconds = 10
        report.noteServer("process 1", nil, before, after)
        #expect(report.serverUse?.cores == 0.5 && report.serverUse?.residentBytesPerViewer == nil)
    }

    @Test func `fails for who got nothing, or nothing more`() {
        func failures(_ change: (inout HLSShared.Sums) -> Void) -> [String] {
            var report = fresh()
            report.conclude(found(change))
            return report.verdict.failures
        }
        #expect(failures({ _ in }) == [])
        #expect(failures({ $0.whole.started = 1 }) == ["3 of 4 viewers received nothing"])
        #expect(failures({ $0.measured.media = 0 }) == ["no media arrived during the measurement"])
        #expect(failures({ $0.standing = [1, 2] }) == ["3 viewers stopped receiving media"])
        // Where all streams have ended, none is to be expected.
        let ended = failures {
            $0.measured.media = 0
            $0.whole.ended = 4
        }
        #expect(ended == [])
    }

    @Test func `says why it has no latency`() {
        func notes(_ change: (inout HLSShared.Sums) -> Void) -> [String] {
            var report = fresh()
            report.conclude(found(change))
            return report.verdict.notes
        }
        #expect(notes({ $0.measured.marks.unmarked = 9 }) == [])
        let unmarked = notes {
            $0.measured.marks.latency = LogHistogram()
            $0.measured.marks.unmarked = 9
        }
        #expect(unmarked.count == 1 && unmarked[0].contains("have no time mark"))
        #expect(notes({ $0.measured.marks.foreign = 1 }).count == 1)
    }

    @Test func `is void where the tool was too slow`() {
        var report = fresh()
        report.generator = .thread(busy: 0.97)
        report.conclude(found())
        #expect(report.verdict.isVoid && report.verdict.exitCode == .void)
        #expect(report.text.contains("VOID: bench-0 was busy 97 %"))
        #expect(report.text.contains("busy 97.0 %, waiting for a CPU 0.000 %"))
    }
}

@Suite struct `A report of publishers by RTMP` {
    private func concluded(
        _ ends: [(RTMPMeter.Values, Double?)], from sums: RTMPReport.Sums = .init(),
        made: FilmThread.Made = .init(frames: 300, keyFrames: 5), seconds: Double = 10
    ) -> RTMPReport {
        var report = RTMPReport(Options(.publish), publishers: ends.count)
        report.seconds = seconds
        report.conclude(
            ends.map { (values: $0.0, joined: $0.1) }, from: sums, made,
            from: .init(frames: 50, keyFrames: 1))
        return report
    }

    private func live(bytes: UInt64 = 0, dropped: UInt64 = 0, failure: String? = nil) -> RTMPMeter.Values {
        .init(live: .zero, bytes: bytes, dropped: dropped, failure: failure, isOver: failure != nil)
    }

    @Test func `counts from the start of the measurement`() throws {
        var report = concluded(
            [(live(bytes: 9_000_000, dropped: 5), 80), (live(bytes: 5_500_000, dropped: 1), 120)],
            from: .init(bytes: 2_000_000, dropped: 2))
        #expect(report.verdict == Report.Verdict() && report.live == 2 && report.lost == 0)
        #expect(report.frames == 250 && report.keyFrames == 4 && report.dropped == 4)
        #expect(report.megabitsPerSecond == 10)
        #expect(report.connect?.p50 == 80 && report.connect?.maximum == 120)
        report.noteServer("x", before, after)
        for words in ["2 of 2, 0", "80.0  120", "250, 4 in 10.0 s", "10.0 Mbit/s", "0.500 cores, 50.0 MB"] {
            #expect(report.text.contains(words), "\(words)")
        }
        let data = try JSONReport.data(report)
        #expect(try JSONDecoder().decode(RTMPReport.self, from: data) == report)
    }

    /// A publisher that is replaced begins to count again.
    @Test func `never counts backwards`() {
        let report = concluded([(live(bytes: 10, dropped: 1), 5)], from: .init(bytes: 1_000, dropped: 30))
        #expect(report.megabitsPerSecond == 0 && report.dropped == 0)
    }

    @Test func `fails with the first reason that there is`() {
        let never = RTMPMeter.Values(failure: "connection refused", isOver: true)
        let mixed = concluded([(live(), 5), (never, nil), (live(failure: "reset"), 6)])
        #expect(
            mixed.verdict.failures == [
                "1 of 3 publishers did not go live: connection refused",
                "1 publishers were lost: connection refused",
            ])
        let still = concluded(
            [(live(), 5)], made: .init(frames: 50, keyFrames: 1, failure: "no encoder"))
        #expect(still.verdict.failures == ["no pictures were made: no encoder"])
        #expect(concluded([(.init(), nil)]).verdict.failures == ["1 of 1 publishers did not go live"])
    }

    @Test func `measures nothing in no time`() {
        var report = concluded([(live(bytes: 9), nil)], seconds: 0)
        report.noteServer("x", before, after)
        #expect(report.megabitsPerSecond == 0 && report.serverUse == nil && report.connect == nil)
        #expect(!report.text.contains("nan") && !report.text.contains("connecting"))
    }
}

@Suite struct `A report of publishers by SRT` {
    @Test func `says that nobody went live`() throws {
        var report = SRTReport(Options(.publish), publishers: 2)
        report.seconds = 10
        report.conclude([], from: .init(), .init(frames: 10, failure: "no socket"), from: .init())
        #expect(report.verdict.failures == ["2 of 2 publishers did not go live: no socket"])
        #expect(report.connect == nil && report.roundTrip == nil && report.megabitsPerSecond == 0)
        #expect(!report.text.contains("round trip") && report.text.contains("0 of 2, 0"))
        let data = try JSONReport.data(report)
        #expect(try JSONDecoder().decode(SRTReport.self, from: data) == report)
        #expect(String(decoding: data, as: UTF8.self).contains("\"protocol\" : \"srt\""))
    }

    @Test func `takes away what was counted before`() {
        var (sums, earlier) = (SRTReport.Sums(), SRTReport.Sums())
        (sums.sent, sums.retransmitted, sums.lost, sums.dropped, sums.bytes) = (10, 20, 30, 40, 50)
        (earlier.sent, earlier.retransmitted, earlier.lost, earlier.dropped, earlier.bytes) = (1, 2, 3, 4, 5)
        let left = sums.since(earlier)
        #expect((left.sent, left.retransmitted, left.lost, left.dropped) == (9, 18, 27, 36))
        #expect(left.bytes == 45)
    }
}

@Suite struct `A report of a large audience` {
    @Test func `that nobody joined fails, and can be written`() throws {
        var report = InteractReport(Options(.interact))
        report.conclude(AudienceTally(), AskTally(), [], [:])
        #expect(report.verdict.failures == ["1000 of 1000 viewers did not connect"])
        #expect(report.text.contains("CPU unknown") && !report.text.contains("nan"))
        let data = try JSONReport.data(report)
        #expect(try JSONDecoder().decode(InteractReport.self, from: data) == report)
    }

    @Test func `tells of memory only where both ends are known`() {
        #expect(InteractReport.text(of: .init(seconds: 1)) == "CPU unknown")
        #expect(
            InteractReport.text(of: .init(seconds: 1, serverCores: 1.25, residentBytesAfter: 5))
                == "125 % of a core")
        let grown = InteractReport.Use(
            seconds: 1, residentBytesBefore: 5_000, residentBytesAfter: 2_000_000)
        #expect(InteractReport.text(of: grown) == "CPU unknown, memory 5.00 kB to 2.00 MB")
    }

    @Test func `does not take a poll's wrong sum for a count`() {
        var options = Options(.interact)
        options.audience.viewers = 1
        var tally = AudienceTally()
        tally.sockets.connected = 1
        var report = InteractReport(options)
        report.votes.counted = -1
        report.conclude(tally, AskTally(), [Hearing()], [:])
        #expect(report.verdict.failures == ["the poll counts -1 votes of 0"])
    }
}

@Suite struct `A report of many followers` {
    @Test func `that did not connect fails, and can be written`() throws {
        var options = Options(.sync)
        (options.following.clients, options.following.commands) = (10, 3)
        var report = SyncReport(options)
        var tally = SyncTally()
        (tally.sockets.connected, tally.sockets.failed) = (7, 3)
        tally.sockets.reasons = ["refused: HTTP/1.1 503": 3]
        report.noteMemory(before, after, clients: 7)
        report.noteServer(before, after)
        report.conclude(tally)
        #expect(
            report.verdict.failures == [
                "3 of 10 clients did not connect", "3 of 3 commands were not seen by all",
            ])
        // Five seconds of the server for no change at all are no cost of one.
        #expect(report.microsecondsPerChange == nil && report.bytesPerClient == 2_857_142)
        #expect(report.text.contains("3 ×") && !report.text.contains("nan"))
        #expect(try JSONDecoder().decode(SyncReport.self, from: JSONReport.data(report)).lost == 0)
    }

    @Test func `knows the load of threads, also of those that began later`() {
        var report = SyncReport(Options(.sync))
        let earlier = ["b": ProcessFiles.ThreadTime(ran: 1_000_000_000, waited: 0)]
        let later = [
            "b": ProcessFiles.ThreadTime(ran: 2_000_000_000, waited: 500_000_000),
            "a": ProcessFiles.ThreadTime(ran: 1_500_000_000, waited: 0),
        ]
        report.noteUse(earlier, later, seconds: 0)
        #expect(report.threads.isEmpty)
        report.noteUse(earlier, later, seconds: 2)
        #expect(report.threads.map(\.name) == ["a", "b"])
        #expect(report.threads.map(\.busy) == [0.75, 0.5] && report.threads.map(\.waiting) == [0, 0.25])
    }

    @Test(arguments: [
        (8.0, 2.0, false), (8, 2.1, true), (1, 1.9, false), (100, 25, false), (100, 26, true),
    ])
    func `are void only where this tool read much too late`(seen: Double, waited: Double, isVoid: Bool) {
        let reasons = SyncReport.voidReasons(seen: Quantiles([seen]), waited: Quantiles([waited]), [])
        #expect(reasons.isEmpty == !isVoid)
        #expect(SyncReport.voidReasons(seen: nil, waited: Quantiles([waited]), []).isEmpty)
        let busy = Report.GeneratorUse.Thread(name: "t", busy: 0.86, waiting: 0)
        #expect(SyncReport.voidReasons(seen: nil, waited: nil, [busy]).count == 1)
    }
}
