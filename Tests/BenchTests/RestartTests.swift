import Base
import Foundation
import TestSupport
import Testing

@testable import sfu_bench

private func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}

@Suite struct `A page that lost its session` {
    private var page = ReturningPage()
    private var random = SeededGenerator(seed: 7)

    /// When the page would ask for the next session; nil if it would not.
    private var due: Int64? {
        guard case .pausing(let end) = page.state else { return nil }
        return end.nanoseconds / 1_000_000
    }

    private mutating func ask(at now: MonotonicTime) { #expect(page.actions(at: now) == [.connect]) }

    @Test mutating func `asks after a pause that grows with each attempt, up to eight seconds`() throws {
        page.lost(at: time(0), using: &random)
        var (now, nominal): (Int64, Int64) = (0, 400)
        for _ in 0..<8 {
            let end = try #require(due)
            #expect((nominal * 3 / 4...nominal * 5 / 4).contains(end - now))
            #expect(page.actions(at: time(end - 1)).isEmpty)
            now = end + 1
            ask(at: time(now))
            #expect(page.state == .asking && page.actions(at: time(now + 60_000)).isEmpty)
            page.failed(.unreachable("refused"), at: time(now), using: &random)
            nominal = min(nominal * 2, 8_000)
        }
    }

    @Test mutating func `waits for as long as the server asks it to`() throws {
        page.lost(at: time(0), using: &random)
        ask(at: time(1_000))
        page.failed(.refused(status: 429, detail: "", retryAfter: 10), at: time(1_000), using: &random)
        let end = try #require(due)
        #expect((8_500...13_500).contains(end))
    }

    @Test(arguments: [
        (SignallingError.refused(status: 403, detail: ""), false), (.unusable("no SDP"), false),
        (.refused(status: 401, detail: ""), false), (.refused(status: 409, detail: ""), true),
        (.refused(status: 503, detail: ""), true), (.unreachable(""), true),
    ])
    mutating func `gives up where the server says no for good`(error: SignallingError, isTemporary: Bool) {
        page.lost(at: time(0), using: &random)
        ask(at: time(1_000))
        page.failed(error, at: time(1_000), using: &random)
        #expect((page.state == .refused) == !isTemporary)
    }

    @Test mutating func `begins with a short pause again only after a session that held`() throws {
        page.lost(at: time(0), using: &random)
        for (start, held, longest) in [(100_000, 9_000, 1_000), (300_000, 10_001, 500)]
            as [(Int64, Int64, Int64)]
        {
            ask(at: time(start))
            page.made()
            page.connected(at: time(start + 1_000))
            page.lost(at: time(start + 1_000 + held), using: &random)
            let pause = try #require(due) - start - 1_000 - held
            #expect((longest * 3 / 5...longest).contains(pause))
        }
    }

    @Test mutating func `asks at once when its socket is open again`() {
        page.socketLost(at: time(200), using: &random)
        page.lost(at: time(0), using: &random)
        ask(at: time(500))
        page.failed(.unreachable(""), at: time(500), using: &random)
        #expect(page.actions(at: time(830)) == [.openSocket])
        #expect(!page.socketTried(isTaken: false, at: time(830), using: &random))
        #expect(page.actions(at: time(831)).isEmpty)
        #expect(!page.socketTried(isTaken: true, at: time(832), using: &random))
        ask(at: time(832))
    }

    @Test mutating func `asks whether a session that seems to live is known`() {
        page.socketLost(at: time(0), using: &random)
        #expect(page.actions(at: time(624)) == [.openSocket])
        #expect(page.socketTried(isTaken: true, at: time(624), using: &random))
        #expect(page.state == .playing(since: nil))
        page.lost(at: time(630), using: &random)
        #expect(page.actions(at: time(630)).isEmpty && due != nil)
    }

    @Test mutating func `is spread out among others`() throws {
        let pauses = try (0..<200).map { _ in
            var page = ReturningPage()
            page.lost(at: time(0), using: &random)
            guard case .pausing(let end) = page.state else { throw RunFailure(description: "no pause") }
            return end.nanoseconds / 1_000_000
        }
        #expect(try #require(pauses.min()) < 320 && #require(pauses.max()) > 480)
    }
}

@Suite struct `An outage` {
    private var outage = Outage()

    private mutating func answer(_ isReady: Bool, at milliseconds: Int64) {
        outage.take(isReady: isReady, asked: time(milliseconds - 2), answered: time(milliseconds))
    }

    @Test mutating func `lasts from the first answer that the server is not ready to the next that it is`() {
        for (isReady, moment) in [
            (true, 0), (true, 20), (false, 40), (false, 60), (true, 80), (false, 100), (true, 120),
        ] as [(Bool, Int64)] { answer(isReady, at: moment) }
        #expect(outage.milliseconds == 40)
        #expect(outage.up == time(80))
    }

    @Test
    mutating func `is noticed by sessions that end, but not over while the server still says it is ready`() {
        answer(true, at: 0)
        outage.sessionEnded(at: time(10))
        answer(true, at: 20)
        #expect(outage.noticed == time(10) && outage.up == nil && outage.milliseconds == nil)
        answer(false, at: 40)
        answer(true, at: 440)
        #expect(outage.noticed == time(10) && outage.milliseconds == 400)
    }

    @Test mutating func `that something hid has taken no time`() {
        outage.sessionEnded(at: time(10))
        answer(true, at: 2_000)
        #expect(outage.up == nil)
        answer(true, at: 2_020)
        #expect(outage.up == time(10) && outage.milliseconds == 0)
    }
}

@Suite struct `A restart's report` {
    private func returner(_ id: Int, isViewer: Bool) -> Returner {
        func ticket(_ id: Int) -> Entrance.Ticket {
            Entrance.Ticket(
                id: id, stream: "s", role: isViewer ? .viewer : .host, identity: "i\(id)", token: nil)
        }
        func session(_ id: Int) -> Participant { Participant(id: id, session: nil, token: nil) }
        var random = SeededGenerator(seed: 1)
        var one = Returner(ticket(id), session(id), isViewer: isViewer, awaitsFrame: true)
        one.page.lost(at: time(0), using: &random)
        _ = one.page.actions(at: time(1_000))
        one.asks()
        one.take(session(id + 100), by: ticket(id + 100))
        return one
    }

    @Test func `counts from the moment that the server was ready, and only new sessions`() throws {
        let log = JoinLog()
        let clients = (1...3).map { returner($0, isViewer: true) }
        for id in 1...3 {
            log.begin(id, isViewer: true, at: time(0))
            log.take([Notice(id: id, milestone: .firstFrame, time: time(5))])
            log.begin(id + 100, isViewer: true, at: time(1_000))
        }
        log.answered(101, requested: time(1_100), at: time(1_110))
        log.take([
            Notice(id: 101, milestone: .firstPacket, time: time(1_200)),
            Notice(id: 101, milestone: .firstFrame, time: time(1_300)),
            Notice(id: 102, milestone: .firstPacket, time: time(1_200)),
        ])
        var group = Report.Restart.Group(clients, since: time(1_000), by: log)
        #expect(group.count == 3 && group.back == 1 && group.kept == 0)
        #expect(
            group.media?.maximum == 300 && group.firstPacket?.maximum == 200 && group.asked?.maximum == 100)
        #expect(group.attempts?.maximum == 1)
        let publisher = returner(7, isViewer: false)
        log.begin(107, isViewer: false, at: time(1_000))
        group = Report.Restart.Group([publisher], since: time(1_000), by: log)
        #expect(group.back == 0)
        log.take([Notice(id: 107, milestone: .taken, time: time(1_500))])
        group = Report.Restart.Group([publisher], since: time(1_000), by: log)
        #expect(group.back == 1 && group.media?.p50 == 500)
    }

    @Test func `counts who was never away, but nobody for a new session that the server knows`() {
        var one = returner(1, isViewer: true)
        one.keeps(101)
        #expect(!one.isKept)
        let ticket = Entrance.Ticket(id: 5, stream: "s", role: .viewer, identity: "i", token: nil)
        one = Returner(
            ticket, Participant(id: 5, session: nil, token: nil), isViewer: true, awaitsFrame: true)
        one.keeps(4)
        #expect(!one.isKept)
        one.keeps(5)
        let group = Report.Restart.Group([one], since: time(0), by: JoinLog())
        #expect(one.isKept && group.kept == 1 && group.back == 1 && group.media == nil)
    }

    @Test func `fails for who never came back, and tells why`() {
        var restart = Report.Restart(isCommanded: true)
        restart.viewers = .init(count: 20, back: 20)
        restart.publishers = .init(count: 3, back: 3)
        #expect(restart.failures(after: 30).isEmpty)
        restart.viewers.back = 18
        restart.reasons = ["HTTP 429": 3, "no answer": 9]
        #expect(restart.failures(after: 30).count == 1)
        #expect(restart.failures(after: 30).first?.hasPrefix("2 of 20 viewers were lost") == true)
        #expect(restart.failures(after: 30).first?.hasSuffix("mostly: no answer") == true)
    }

    @Test func `is text, JSON and a page`() throws {
        var report = `A report`.sample
        report.command = "restart"
        report.restart = .init(isCommanded: true, commandStatus: 0, noticed: 12, notReady: 345)
        report.restart?.viewers = .init(count: 2, back: 2, media: Quantiles([500, 700]))
        report.restart?.reasons = ["HTTP 503: <later>": 4]
        let text = TextReport.text(report)
        for words in ["345 ms", "viewers have a complete key frame", "4 ×", "2 of 2"] {
            #expect(text.contains(words), "\(words)")
        }
        let page = HTMLReport.page(report)
        #expect(page.contains("&lt;later&gt;") && page.contains("since the server was ready again, ms"))
        #expect(try JSONDecoder().decode(Report.self, from: try JSONReport.data(report)) == report)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A command of the operator's` {
    /// Waits for its end; what is tested here ends by itself.
    private func status(of text: String) async throws -> Int? {
        var command = try ShellCommand(text)
        await withCheckedContinuation { [process = command.process] continuation in
            // Waiting for a process holds the thread, which no task may.
            Thread.detachNewThread {
                var end = siginfo_t()
                // It stays to be asked for its status.
                while waitid(P_PID, id_t(process), &end, WEXITED | WNOWAIT) != 0, errno == EINTR {}
                continuation.resume()
            }
        }
        command.look()
        return command.status
    }

    @Test(arguments: [
        ("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("read line", 1),
        // Neither signals that this process may ignore nor its files are inherited.
        ("kill -TERM $$; exit 0", 143), ("test $(ls /proc/self/fd | wc -l) -le 4", 0),
    ])
    func `ends with its own status`(text: String, expected: Int) async throws {
        #expect(try await status(of: text) == expected)
    }
}
