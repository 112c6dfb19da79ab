import Base
import Foundation
import TestSupport
import Testing

@testable import sfu_bench

@Suite struct `What a viewer hears` {
    private static let text = AudienceMessage.text(sentAt: 12_345)

    private func message(_ json: String) throws -> AudienceMessage {
        try JSONDecoder().decode(AudienceMessage.self, from: Data(json.utf8))
    }

    @Test func `is counted`() throws {
        var hearing = Hearing()
        hearing.take(
            try message(
                #"{"type":"interaction","comments":[{"number":1,"text":"\#(Self.text)"}],"more":4,"#
                    + #""gifts":[{"number":1,"name":"7"},{"number":2,"name":null}],"#
                    + #""reactions":{"heart":{"rate":9,"total":30}}}"#))
        hearing.take(try message(#"{"type":"heartbeat","version":9}"#))
        #expect(hearing == Hearing(hearts: 30, told: 1, more: 4, lastGift: 2))
        #expect(AudienceMessage.sentAt(Self.text) == 12_345)
        #expect(AudienceMessage.sentAt("hello") == nil)
    }

    @Test(arguments: [[1, 1], [2], [1, 3], [1, 2, 1]])
    func `tells of gifts that come twice, out of order, or not at all`(numbers: [Int]) throws {
        var hearing = Hearing()
        for number in numbers {
            hearing.take(try message(#"{"type":"interaction","gifts":[{"number":\#(number)}]}"#))
        }
        #expect(hearing.wrongGifts > 0)
    }

    @Test func `is wrong, but ends nothing, where numbers have no sense`() throws {
        var hearing = Hearing()
        let absurd =
            #"{"type":"interaction","comments":[{"text":"x"}],"more":\#(Int.max),"#
            + #""gifts":[{"number":\#(Int.max)},{"number":\#(Int.min)},{"number":1}]}"#
        for _ in 0..<2 { hearing.take(try message(absurd)) }
        #expect(hearing.told == 2 && hearing.lastGift == 1 && hearing.wrongGifts == 4)
        #expect(!hearing.isComplete(AudienceTally(), AskTally()))
    }

    @Test func `says nothing of who was given everything anew`() throws {
        var hearing = Hearing()
        hearing.take(try message(#"{"type":"snapshot","interaction":{},"version":3}"#))
        #expect(hearing.fellBehind && hearing.isComplete(AudienceTally(), AskTally()))
    }

    @Test func `is parsed once for all who hear the same`() {
        var memory = MessageMemory()
        func heard(_ number: Int) -> AudienceMessage? {
            memory.message(Array(#"{"type":"interaction","more":\#(number)}"#.utf8)[...])
        }
        for number in 0..<100 { for _ in 0..<5 { #expect(heard(number)?.more == number) } }
        #expect(memory.parsed == 100)
        // One that came a moment ago is still known, one of long before is not.
        #expect(heard(90)?.more == 90 && memory.parsed == 100)
        #expect(heard(3)?.more == 3 && memory.parsed == 101)
        for _ in 0..<2 { #expect(memory.message(Array("no JSON".utf8)[...]) == nil) }
        #expect(memory.parsed == 102)
    }
}

@Suite struct `What comes so often` {
    @Test func `comes as often, however late somebody looks`() {
        var cadence = Cadence(rate: 40)
        var random = SeededGenerator(seed: 7)
        var (now, count) = (MonotonicTime(nanoseconds: 99), 0)
        #expect(cadence.due(at: now) == 0)
        for _ in 0..<1_000 {
            now = now + .milliseconds(Int.random(in: 0..<20, using: &random))
            count += cadence.due(at: now)
        }
        let expected = Double(now.nanoseconds - 99) / 1e9 * 40
        #expect(abs(Double(count) - expected) <= 1)
    }
}

@Suite struct `An answer by HTTP` {
    @Test func `is read once it is complete`() throws {
        let bytes = Array("HTTP/1.1 200 OK\r\nContent-Type: x\r\nCONTENT-LENGTH: 4\r\n\r\nbody".utf8)
        for count in 0..<bytes.count { #expect(HTTPAnswer(Array(bytes.prefix(count))) == nil) }
        let answer = try #require(HTTPAnswer(bytes + [1]))
        #expect(answer.status == 200 && answer.body.elementsEqual("body".utf8))
    }

    @Test(arguments: [
        ("HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n", 404, 0),
        ("HTTP/1.1 200\r\nContent-Length:\t 3 \r\n\r\nabcdef", 200, 3),
        // The first length counts, and a status that is none is not 200.
        ("HTTP/1.1 OK 200\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 0, 1),
    ])
    func `is read as servers write it`(text: String, status: Int, length: Int) throws {
        let read = HTTPAnswer(Array(text.utf8))
        let answer = try #require(read)
        #expect(answer.status == status && answer.body.count == length)
    }

    @Test(arguments: [
        "", "Content-Length: -1\r\n", "Content-Length: x\r\n", "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 9223372036854775807\r\n", "X-Content-Length: 0\r\n", "Content-Length : 0\r\n",
        "Content-Length: 1,1\r\n",
    ])
    func `is none without a length`(header: String) {
        #expect(HTTPAnswer(Array("HTTP/1.1 200 OK\r\n\(header)\r\n".utf8)) == nil)
    }
}

@Suite struct `A report of an audience` {
    /// Three viewers, who heard all of it but for what is changed.
    private func report(
        _ change: (inout AudienceTally, inout AskTally, inout [Hearing], inout [Int: String]) -> Void
    ) -> InteractReport {
        var options = Options(.interact)
        options.audience.viewers = 3
        var tally = AudienceTally()
        (tally.sockets.connected, tally.hearts, tally.comments, tally.accepted) = (3, 50, 8, 8)
        tally.seen.add(90_000_000)
        var asked = AskTally()
        asked.gifts = ["a": 1, "b": 2]
        asked.votes = 3
        var hearings = Array(repeating: Hearing(hearts: 50, told: 6, more: 2, lastGift: 2), count: 3)
        var ledger = [1: "a", 2: "b"]
        change(&tally, &asked, &hearings, &ledger)
        var report = InteractReport(options)
        report.busy = InteractReport.Use(seconds: 2, serverCores: 0.5)
        report.votes.counted = 3
        report.conclude(tally, asked, hearings, ledger)
        return report
    }

    @Test func `is well where everything was told to everybody`() throws {
        let report = report { _, _, _, _ in }
        #expect(report.verdict == Report.Verdict() && report.verdict.exitCode == .success)
        #expect(report.hearts.perSecond == 25 && report.gifts.perSecond == 1 && report.votes.perSecond == 1.5)
        #expect(report.text.contains("50.0 % of a core") && !report.text.contains("FAILED"))
        let data = try JSONEncoder().encode(report)
        #expect(try JSONDecoder().decode(InteractReport.self, from: data) == report)
    }

    @Test func `fails for each thing that is not exact`() {
        let reports = [
            report { tally, _, _, _ in tally.hearts += 1 },
            report { _, _, hearings, _ in hearings[1].hearts -= 1 },
            report { _, _, hearings, _ in hearings[2].more -= 1 },
            report { _, _, hearings, _ in hearings[0].lastGift = 1 },
            report { _, _, hearings, _ in hearings[0].wrongGifts = 1 },
            report { tally, _, _, _ in tally.accepted -= 1 },
            report { tally, _, _, _ in tally.refused["too-fast"] = 1 },
            report { tally, _, _, _ in tally.sockets.lost = 1 },
            report { _, asked, _, _ in asked.doubled = 1 },
            report { _, asked, _, _ in asked.gifts["c"] = 2 },
            report { _, asked, _, _ in asked.refused["HTTP 500"] = 1 },
            report { _, asked, _, _ in asked.votes = 4 },
            report { _, _, _, ledger in ledger[3] = "c" },
            report { _, _, _, ledger in ledger[2] = "a" },
        ]
        for report in reports {
            #expect(!report.verdict.failures.isEmpty && report.text.contains("FAILED"), "\(report)")
        }
    }

    @Test func `does not count who read too slowly`() {
        let report = report { _, _, hearings, _ in hearings[0] = Hearing(told: 1, fellBehind: true) }
        #expect(report.behind == 1 && report.verdict.failures.isEmpty && report.verdict.notes.count == 1)
    }
}
