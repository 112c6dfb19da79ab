import Foundation
import TestSupport
import Testing

@testable import sfu_bench

@Suite struct `Frames of a server` {
    private func frames(_ bytes: [UInt8]) throws -> [(ServerFrames.Kind?, [UInt8])] {
        var found: [(ServerFrames.Kind?, [UInt8])] = []
        var offset = 0
        while let frame = try ServerFrames.frame(in: bytes.span, at: offset) {
            found.append((frame.kind, Array(bytes[frame.payload])))
            offset = frame.payload.upperBound
        }
        return found
    }

    @Test(arguments: [0, 1, 125, 126, 127, 300, 65_535, 65_536, 100_000])
    func `are found whatever their length`(length: Int) throws {
        let payload = [UInt8](repeating: 7, count: length)
        let header: [UInt8] =
            length < 126
            ? [0x81, UInt8(length)]
            : length <= 65_535
                ? [0x81, 126, UInt8(length >> 8), UInt8(length & 0xFF)]
                : [
                    0x81, 127, 0, 0, 0, 0, 0, UInt8(length >> 16), UInt8(length >> 8 & 0xFF),
                    UInt8(length & 0xFF),
                ]
        let all = try frames(header + payload + [0x89, 1, 9])
        #expect(all.count == 2)
        #expect(all.first?.0 == .text && all.first?.1 == payload)
        #expect(all.last?.0 == .ping && all.last?.1 == [9])
        // Every beginning of it is no frame yet.
        for count in [0, 1, header.count - 1, header.count + length - 1] where count < header.count + length {
            #expect(try frames(Array((header + payload).prefix(count))).isEmpty)
        }
    }

    @Test func `that are too long are refused`() {
        #expect(throws: ServerFrames.Failure.tooLong) {
            _ = try frames([0x81, 127, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        }
    }

    @Test func `of any bytes do no harm`() {
        var random = SeededGenerator(seed: 71)
        for _ in 0..<5_000 {
            let bytes = (0..<Int.random(in: 0...20, using: &random)).map { _ in
                Bool.random(using: &random) ? UInt8.random(in: 0...255, using: &random) : 127
            }
            _ = try? frames(bytes)
        }
    }

    @Test func `are looked through for what tells of a command`() {
        let bytes = Array(#"xx{"raisedHands":{"vic":{"name""#.utf8)
        let marker = Array(#""raisedHands":{"vic":{"#.utf8)
        // A `Span` cannot stand in `#expect`.
        let isFound = { (pattern: [UInt8], range: Range<Int>) in bytes.span.contains(pattern, in: range) }
        #expect(isFound(marker, 0..<bytes.count))
        #expect(!isFound(marker, 4..<bytes.count))
        #expect(!isFound(marker, 0..<20))
        #expect(!isFound(marker + [0], 0..<bytes.count))
    }
}

@Suite struct `A report of followers` {
    private func report(seen: [Int64], waited: Int64?, lost: Int = 0) -> SyncReport {
        var options = Options(.sync)
        options.following.clients = seen.count
        options.following.commands = 1
        var news = SyncNews()
        news.sockets.connected = seen.count
        news.sockets.lost = lost
        news.seen = seen.map { ($0 * 1_000_000, waited.map { $0 * 1_000_000 }) }
        var tally = SyncTally()
        tally.merge(news, isSample: false)
        var report = SyncReport(options)
        report.add(SyncReport.Command(isComplete: true, answered: 3, first: 4, last: 12))
        report.conclude(tally)
        return report
    }

    @Test func `tells when all saw the change, and when it had arrived`() throws {
        let report = report(seen: Array(1...100), waited: 1)
        let seen = try #require(report.seen)
        let arrived = try #require(report.arrived)
        #expect(abs(seen.p95 - 95) < 2 && abs(arrived.p95 - 94) < 2)
        #expect(report.complete == 1 && report.verdict == Report.Verdict())
        #expect(report.verdict.exitCode == .success)
        #expect(report.text.contains("change seen by all clients") && !report.text.contains("VOID"))
    }

    @Test func `is void where the tool read late`() {
        let report = report(seen: Array(repeating: 20, count: 100), waited: 12)
        #expect(report.verdict.isVoid && report.verdict.exitCode == .void)
        #expect(report.text.contains("VOID"))
    }

    @Test func `fails where somebody was lost`() {
        let report = report(seen: [5, 5], waited: nil, lost: 1)
        #expect(report.verdict.failures == ["1 clients were lost"])
        #expect(report.verdict.exitCode == .failure)
    }

    @Test func `holds what JSON needs, and no more`() throws {
        let data = try JSONEncoder().encode(report(seen: [5], waited: 0))
        let decoded = try JSONDecoder().decode(SyncReport.self, from: data)
        #expect(decoded.seen?.count == 1 && decoded.clients == 1)
    }
}

@Suite struct `The answer to a command` {
    /// Its time is that of the status, whenever the body comes.
    @Test(arguments: [[12], [9, 12], [3, 11, 12], [1, 9, 10, 20], [30], []])
    func `is known once, with the status, however it is cut`(places: [Int]) {
        let bytes = Array("HTTP/1.1 204 No Content\r\nDate: now\r\n\r\nHTTP/1.1 500".utf8)
        var answer = SyncAnswer()
        var found: [Int?] = []
        var start = 0
        for place in places + [bytes.count] {
            found.append(answer.receive(bytes[start..<place]))
            start = place
        }
        let known = (places + [bytes.count]).firstIndex { $0 >= 12 }
        let told = found.firstIndex { $0 != nil }
        #expect(told == known)
        #expect(found.compactMap(\.self) == [204])
    }

    @Test func `is 0 where it is no answer of HTTP`() {
        var answer = SyncAnswer()
        let status = answer.receive(Array("SSH-2.0-OpenSSH".utf8)[...])
        #expect(status == 0)
    }
}
