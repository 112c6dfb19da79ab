import Base
import Peer
import TestSupport
import Testing
import Wire

/// Offers of clients that tell of packets by their own sequence numbers.
/// - Source: RFC 8888 §6.
@Suite struct `Offers of feedback by sequence number` {
    private static let line = "a=rtcp-fb:* ack ccfb"

    /// An offer with another line in every m-line, or only in the first.
    private func offer(
        _ name: String, with line: String = Self.line, everywhere: Bool = true
    ) throws -> SessionDescription {
        try NegotiationFixture.offer(
            name, replacing: "a=rtcp-mux\r\n", with: "a=rtcp-mux\r\n\(line)\r\n", everywhere: everywhere)
    }

    @Test func `viewers get feedback by sequence number instead of receiver estimates`() throws {
        let (plan, answer) = try NegotiationFixture.negotiate(offer("aiortc-play"), .play)
        #expect(plan.slots.count == 2 && plan.slots.allSatisfy(\.reportsBySequenceNumber))
        #expect(plan.slots.allSatisfy { $0.tellsOfPackets && $0.extensions.absoluteSendTime == nil })
        for section in answer.media {
            let kinds = try section.feedback()
            #expect(kinds.filter { $0.kind == "ack ccfb" } == [.init(payloadType: nil, kind: "ack ccfb")])
            #expect(!kinds.contains { $0.kind == "goog-remb" })
        }
    }

    /// Browsers have used transport-wide numbers for years.
    @Test func `transport-wide numbers are preferred where both are offered`() throws {
        let (plain, _) = try NegotiationFixture.negotiate("chrome-play")
        let (plan, answer) = try NegotiationFixture.negotiate(offer("chrome-play"), .play)
        #expect(plan.slots.map(\.extensions) == plain.slots.map(\.extensions))
        #expect(plan.slots.allSatisfy { $0.tellsOfPackets && !$0.reportsBySequenceNumber })
        #expect(answer.text.contains("transport-cc") && !answer.text.contains("ccfb"))
    }

    /// One path is not measured by two clocks.
    @Test func `transport-wide numbers in one m-line exclude the other feedback in all`() throws {
        var description = try offer("chrome-play")
        let video = try #require(description.media.firstIndex { $0.kind == .video })
        description.media[video].attributes.removeAll {
            $0.value?.contains("transport-wide") == true || $0.value?.hasSuffix("transport-cc") == true
        }
        let (plan, answer) = try NegotiationFixture.negotiate(description, .play)
        #expect(plan.slots.map(\.tellsOfPackets) == [true, false])
        #expect(!answer.text.contains("ccfb"))
    }

    @Test func `one m-line alone may use feedback by sequence number`() throws {
        let (plan, answer) = try NegotiationFixture.negotiate(
            offer("aiortc-play", everywhere: false), .play)
        #expect(plan.slots.map(\.reportsBySequenceNumber) == [true, false])
        #expect(
            try answer.media.map { try $0.feedback().contains { $0.kind == "ack ccfb" } } == [true, false])
    }

    /// The feedback has to be for all payload types (RFC 8888 §6).
    @Test func `feedback by sequence number for one payload type is ignored`() throws {
        let (plan, answer) = try NegotiationFixture.negotiate(
            offer("aiortc-play", with: "a=rtcp-fb:97 ack ccfb"), .play)
        #expect(plan.slots.allSatisfy { !$0.tellsOfPackets })
        #expect(!answer.text.contains("ccfb"))
    }

    @Test(arguments: ["aiortc-publish", "gstreamer-publish", "chrome-publish"])
    func `publishers do not get feedback by sequence number`(name: String) throws {
        let (plain, _) = try NegotiationFixture.negotiate(name)
        let (plan, answer) = try NegotiationFixture.negotiate(offer(name), .publish)
        #expect(plan == plain)
        #expect(!answer.text.contains("ccfb"))
    }
}
