import Base
import Testing

@testable import Ingest

/// What a publisher's rates are, and when an SRT connection has waited long enough.
@Suite struct `Clocks of an ingest` {
    private let start = MonotonicTime.zero + .seconds(100)

    // MARK: The meter

    @Test func `measure over the time that has passed, not over the interval`() throws {
        var meter = IngestMeter()
        // What came before the session began does not count.
        meter.noteVideo(bytes: 9_000_000, isFrame: true)
        meter.noteAudio(bytes: 9_000_000)
        let none = meter.takeReport(at: start)
        #expect(none == nil && meter.deadline == nil)
        meter.begin(at: start)
        for _ in 0..<60 { meter.noteVideo(bytes: 50, isFrame: true) }
        // Configurations have bytes, but are not pictures.
        meter.noteVideo(bytes: 3_000, isFrame: false)
        meter.noteAudio(bytes: 1_500)
        let early = meter.takeReport(at: start + .milliseconds(1_999))
        #expect(early == nil)
        let taken = meter.takeReport(at: start + .seconds(3))
        let report = try #require(taken)
        #expect(report.framesPerSecond == 20 && report.videoBitrate == 16_000)
        #expect(report.audioBitrate == 4_000 && report.keyFrameInterval == nil)
        // The next interval begins with the report, and with nothing.
        let due = start + .seconds(5)
        #expect(meter.deadline == due)
        let next = meter.takeReport(at: due)
        #expect(next == IngestReport())
    }

    @Test func `report nothing for a time that goes back`() {
        var meter = IngestMeter()
        meter.begin(at: start)
        meter.noteAudio(bytes: 1_000)
        let none = meter.takeReport(at: start - .seconds(50))
        #expect(none == nil)
        let report = meter.takeReport(at: start + .seconds(2))
        #expect(report?.audioBitrate == 4_000)
    }

    // MARK: SRT

    @Test func `do not start again for data that comes before the answer`() {
        var session = SRTSession(at: start)
        session.receive(at: start + .seconds(9))
        session.noteMedia()
        #expect(session.end(at: start + .seconds(10)) == .timedOut)
        #expect(!session.isPublishing && !session.isOver, "who ends it is another matter")
    }

    @Test func `do not start again for a second answer`() {
        var session = SRTSession(at: start)
        session.accept(at: start + .seconds(5))
        session.receive(at: start + .seconds(14))
        session.accept(at: start + .seconds(14))
        #expect(session.end(at: start + .seconds(15))?.name == "unsupported")
    }

    @Test func `call silence what was silent, and unsupported what was not`() {
        var session = SRTSession(at: start)
        session.accept(at: start)
        #expect(session.end(at: start + .milliseconds(9_999)) == nil)
        #expect(session.end(at: start + .milliseconds(14_999))?.name == "unsupported")
        #expect(session.end(at: start + .seconds(15)) == .stalled)
        session.receive(at: start + .seconds(5))
        #expect(session.end(at: start + .seconds(15))?.name == "unsupported")
        session.noteMedia()
        #expect(session.end(at: start + .milliseconds(19_999)) == nil)
        #expect(session.end(at: start + .seconds(20)) == .stalled)
    }

    /// Whoever sleeps until the deadline finds an end then, and none before.
    @Test(arguments: [false, true], [false, true])
    func `agree on when something has to be looked at`(isAccepted: Bool, hasMedia: Bool) throws {
        for seconds in [0, 3, 8, 30] {
            var session = SRTSession(at: start)
            if isAccepted { session.accept(at: start + .seconds(2)) }
            session.receive(at: start + .seconds(seconds))
            if hasMedia { session.noteMedia() }
            let deadline = try #require(session.deadline)
            #expect(session.end(at: deadline - .nanoseconds(1)) == nil)
            #expect(session.end(at: deadline) != nil)
            let isFirst = session.finish()
            #expect(isFirst && session.end(at: deadline) == nil && session.deadline == nil)
        }
    }
}
