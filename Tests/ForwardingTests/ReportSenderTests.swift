import Base
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Reports from where nobody is known` {
    private var senders = ReportSenders()
    private let ann: SessionID
    private let bob: SessionID

    init() {
        var random = SeededGenerator(seed: 1)
        ann = SessionID(using: &random)
        bob = SessionID(using: &random)
    }

    private func report(_ ssrc: UInt8, length: Int = 8) -> [UInt8] {
        Array(([0x80, 201, 0, 1, 0, 0, 0, ssrc] as [UInt8]).prefix(length))
    }

    private mutating func note(_ ssrc: UInt8, of session: SessionID) {
        senders.note(report(ssrc).span, of: session)
    }

    private mutating func find(
        _ datagram: [UInt8], _ kind: DatagramKind = .rtcp, at milliseconds: Int64 = 0
    ) -> [SessionID] {
        senders.find(datagram.span, kind, at: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
    }

    @Test mutating func `a report is matched with a session that sent with this SSRC and is still there`() {
        note(7, of: ann)
        note(8, of: bob)
        // As many do who receive only.
        note(1, of: bob)
        note(1, of: ann)
        var found = [7, 8, 1, 9].map { find(report($0)) }
        #expect(found == [[ann], [bob], [bob, ann], []])
        senders.remove(ann)
        found = [7, 8, 1].map { find(report($0)) }
        #expect(found == [[], [bob], [bob]])
        senders.remove(bob)
        found = [7, 8, 1].map { find(report($0)) }
        #expect(found == [[], [], []])
    }

    @Test mutating func `media is matched with a session that sent reports with this SSRC`() {
        note(7, of: ann)
        let media: [UInt8] = [0x80, 96, 0, 1, 0, 0, 0, 9, 0, 0, 0, 7]
        var found = find(media, .rtp)
        #expect(found == [ann])
        found = find(Array(media.dropLast()), .rtp)
        #expect(found == [])
    }

    @Test mutating func `a report is matched with a bounded number of sessions that share an SSRC`() {
        var random = SeededGenerator(seed: 2)
        for _ in 0..<ReportSenders.sharerLimit + 10 { note(1, of: SessionID(using: &random)) }
        let found = find(report(1))
        #expect(found.count == ReportSenders.sharerLimit)
        let looks = (0..<500 as Range<Int64>).count { !find(report(1), at: 1_000 + $0).isEmpty }
        #expect(looks == ReportSenders.sharedLooksPerSecond)
    }

    /// A session that just moved fell silent a moment ago; others still send, or have been silent for long.
    @Test func `the session that has just fallen silent is tried first`() {
        let silences: [(name: String, silence: Duration)] = [
            ("resting", .seconds(4)), ("slow", .milliseconds(1_900)), ("moved", .milliseconds(310)),
            ("talking", .milliseconds(5)), ("due", .milliseconds(95)),
        ]
        #expect(ReportSenders.likeliest(silences) == ["moved", "slow", "due", "talking"])
        let crowd = (0..<1_000).map { (name: $0, silence: Duration.milliseconds($0 % 100)) }
        let tried = ReportSenders.likeliest(crowd + [(name: 1_000, silence: .milliseconds(301))])
        #expect(tried.count <= ReportSenders.trials && tried.first == 1_000)
    }

    @Test mutating func `a few SSRCs are remembered for each session`() {
        for ssrc in UInt8(1)...100 { note(ssrc, of: ann) }
        let found = (UInt8(1)...100).filter { !find(report($0)).isEmpty }
        #expect(found == [1, 2, 3, 4])
    }

    @Test mutating func `reports from unknown addresses are looked at a few times a second`() {
        note(7, of: ann)
        for second in 0..<3 as Range<Int64> {
            let looks = (0..<200 as Range<Int64>).count { !find(report(7), at: 1_000 * second + $0).isEmpty }
            #expect(looks == ReportSenders.looksPerSecond)
        }
    }

    @Test(arguments: 0..<8) mutating func `a truncated report matches no session`(length: Int) {
        note(7, of: ann)
        senders.note(report(7, length: length).span, of: bob)
        let found = find(report(7, length: length))
        #expect(found == [])
    }
}
