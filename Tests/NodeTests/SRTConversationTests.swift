import Base
import Ingest
import Net
import TestSupport
import Testing

@testable import Node

/// What a connection reports to its node, in words.
private final class Reports {
    private(set) var words: [String] = []

    func add(_ event: IngestEvent) {
        switch event {
        case .asked: words.append("asked")
        case .begun: words.append("begun")
        case .originalBegun: words.append("original")
        case .notice: words.append("notice")
        case .report: words.append("report")
        case .link(let link): words.append("link \(link.received)")
        case .rejected(let reason, _): words.append("rejected \(reason.name)")
        case .ended(let reason, let remote): words.append("ended \(reason.name) \(remote.port)")
        }
    }
}

private func seconds(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: Int64(seconds * 1e9))
}

private let remote = TransportAddress(ip: .loopback, port: 4_000)

@Suite struct `A publisher's connection by SRT` {
    private let reports: Reports
    private let conversation: SRTConversation

    init() {
        let reports = Reports()
        self.reports = reports
        conversation = SRTConversation(remote: remote, isDecoding: true, at: seconds(0)) { reports.add($0) }
    }

    /// A packet of a transport stream with nothing in it.
    private static let nothing: [UInt8] = [0x47, 0x1F, 0xFF, 0x10] + [UInt8](repeating: 0xFF, count: 184)
    /// More than a transport stream may have between its packets.
    private static let garbage = [UInt8](repeating: 0, count: 70_000)

    private func receive(_ bytes: [UInt8], at time: Double) {
        conversation.receive(bytes.span, at: seconds(time))
    }

    private func link(_ received: Int) -> SRTLink {
        var link = SRTLink()
        link.received = received
        return link
    }

    @Test func `drops what comes before the node has decided`() {
        receive(Self.garbage, at: 1)
        conversation.note(link(1), at: seconds(1))
        #expect(reports.words.isEmpty)
        #expect(!conversation.isOver && !conversation.isEstablished)
        conversation.perform(.accept, at: seconds(2))
        #expect(conversation.isEstablished)
        receive(Self.nothing, at: 3)
        #expect(!conversation.isOver)
    }

    @Test func `ends where what comes is no transport stream`() {
        conversation.perform(.accept, at: seconds(0))
        receive(Self.nothing + Self.garbage, at: 1)
        #expect(conversation.isOver && !conversation.isEstablished)
        #expect(reports.words == ["ended malformed 4000"])
    }

    @Test func `waits ten seconds for the node`() {
        #expect(conversation.deadline == seconds(10))
        receive(Self.nothing, at: 9)
        conversation.advance(to: seconds(9.5))
        #expect(!conversation.isOver)
        conversation.advance(to: seconds(10))
        #expect(conversation.isOver)
        #expect(reports.words == ["ended timed-out 4000"])
        // Too late.
        conversation.perform(.accept, at: seconds(10))
        #expect(conversation.isOver && !conversation.isEstablished)
        #expect(conversation.deadline == nil)
    }

    @Test func `waits ten seconds for media from when it was accepted`() {
        conversation.perform(.accept, at: seconds(8))
        #expect(conversation.deadline == seconds(18))
        // Accepting it again gives no more time.
        conversation.perform(.accept, at: seconds(12))
        receive(Self.nothing, at: 17)
        #expect(conversation.deadline == seconds(18))
        conversation.advance(to: seconds(17.5))
        #expect(!conversation.isOver)
        conversation.advance(to: seconds(18))
        #expect(conversation.isOver)
        #expect(reports.words == ["ended unsupported 4000"])
    }

    @Test func `tells of its link while it publishes`() {
        conversation.note(link(1), at: seconds(1))
        conversation.perform(.accept, at: seconds(2))
        conversation.note(link(2), at: seconds(2))
        conversation.note(link(3), at: seconds(3))
        conversation.lose(at: seconds(4))
        conversation.note(link(4), at: seconds(4))
        #expect(reports.words == ["link 2", "link 3", "ended by-publisher 4000"])
    }

    @Test func `reports its end once, and nothing after it`() {
        conversation.perform(.accept, at: seconds(0))
        conversation.perform(.end(.ended("The host ended it.")), at: seconds(1))
        conversation.perform(.end(.overloaded), at: seconds(1))
        conversation.perform(.makeKeyFrame, at: seconds(1))
        receive(Self.garbage, at: 1)
        conversation.advance(to: seconds(60))
        conversation.lose(at: seconds(60))
        #expect(reports.words == ["ended ended 4000"])
        #expect(conversation.isOver)
        let output = conversation.takeOutput(waiting: 0)
        #expect(output.isEmpty)
    }
}

@Suite struct `The reception of a publisher's media` {
    private let reports: Reports
    private let reception: IngestReception

    init() {
        let reports = Reports()
        self.reports = reports
        reception = IngestReception(remote: remote, isDecoding: true, seed: 1) { reports.add($0) }
    }

    /// The metadata of an encoder that sends pictures of H.264 alone, and their configuration.
    private func begin() -> IngestEnd? {
        let configuration = hexBytes(
            """
            17 00 000000 01 42c01e ff e1 0019 6742c01ed900a02ff970110000030001000003003c8f162e48
            01 0005 68cb83cb20
            """)
        return reception.receive(at: seconds(1)) { media in
            media.expect(audio: false, video: true, at: seconds(1))
                + media.receive(video: configuration.span, timestamp: 0, at: seconds(1))
        }
    }

    @Test func `tells when the formats are known, and that it has begun`() {
        #expect(!reception.hasBegun)
        let end = begin()
        #expect(end == nil)
        #expect(reception.hasBegun)
        #expect(reports.words == ["begun"])
    }

    @Test func `reports what it measures while it goes on`() throws {
        let end = begin()
        #expect(end == nil)
        let deadline = try #require(reception.deadline)
        #expect(deadline > seconds(1))
        let late = reception.advance(to: deadline)
        #expect(late == nil)
        #expect(reports.words == ["begun", "report"])
        reception.finish(because: .byPublisher)
        let later = reception.advance(to: deadline + .seconds(60))
        #expect(later == nil)
        #expect(reports.words == ["begun", "report", "ended by-publisher 4000"])
    }

    @Test func `says why it cannot go on, and leaves the end to the connection`() {
        // A kind of sound that no viewer gets: MP3.
        let sound: [UInt8] = [0x2F, 0, 0]
        let end = reception.receive(at: seconds(1)) { media in
            media.receive(audio: sound.span, timestamp: 0, at: seconds(1))
        }
        #expect(end?.name == "unsupported")
        #expect(reports.words.isEmpty)
        reception.finish(because: .stalled)
        reception.finish(because: .byPublisher)
        #expect(reports.words == ["ended stalled 4000"])
    }

    @Test func `begins nothing after its end`() {
        reception.finish(because: .timedOut)
        let end = begin()
        #expect(end == nil)
        #expect(!reception.hasBegun)
        reception.note(SRTLink())
        #expect(reports.words == ["ended timed-out 4000"])
    }
}
