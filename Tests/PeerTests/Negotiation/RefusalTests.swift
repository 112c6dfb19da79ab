import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite struct RefusedOffers {
    private func expect(
        _ refusal: SessionOffer.Refusal, _ kind: SessionOffer.RefusalKind, _ offer: SessionDescription,
        _ purpose: SessionOffer.Purpose = .publish, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(throws: refusal, sourceLocation: sourceLocation) {
            try NegotiationFixture.negotiate(offer, purpose)
        }
        #expect(refusal.kind == kind, sourceLocation: sourceLocation)
        #expect(refusal.description.hasSuffix("."), sourceLocation: sourceLocation)
    }

    private func obs(without line: String) throws -> SessionDescription {
        try NegotiationFixture.offer("obs-publish", replacing: line + "\r\n", with: "", everywhere: false)
    }

    @Test func `an offer that lacks what every session needs is refused`() throws {
        var empty = try NegotiationFixture.offer("obs-publish")
        empty.media = []
        expect(.noMedia, .malformed, empty)
        expect(.missingMID, .malformed, try obs(without: "a=mid:1"))
        expect(.noICECredentials, .malformed, try obs(without: "a=ice-ufrag:nxcM"))
        expect(.noICECredentials, .malformed, try obs(without: "a=ice-pwd:ezjAjgSSLLvbRhUA1zc6Se"))
        let fingerprint = try #require(NegotiationFixture.offer("obs-publish").first(.fingerprint))
        expect(.noFingerprint, .malformed, try obs(without: "a=fingerprint:\(fingerprint)"))
        expect(.noBundle, .unsupported, try obs(without: "a=group:BUNDLE 0 1"))
        expect(.noRTCPMultiplexing("0"), .unsupported, try obs(without: "a=rtcp-mux"))
    }

    @Test(
        arguments: [
            ("a=ice-ufrag:nxcM", "a=ice-ufrag:nxc", .invalidICECredentials, .malformed),
            ("a=ice-pwd:ezj", "a=ice-pwd:e", .invalidICECredentials, .malformed),
            ("a=mid:1", "a=mid:0", .duplicateMID("0"), .malformed),
            ("a=mid:1", "a=mid:a b", .invalidMID, .malformed),
            ("a=mid:1", "a=mid:" + String(repeating: "x", count: 65), .invalidMID, .malformed),
            ("BUNDLE 0 1", "BUNDLE 0 2", .unknownMID("2"), .malformed),
            ("BUNDLE 0 1", "BUNDLE 0 1 2", .unknownMID("2"), .malformed),
            ("BUNDLE 0 1", "BUNDLE 0 0", .duplicateMID("0"), .malformed),
            ("BUNDLE 0 1", "BUNDLE 0", .notBundled("1"), .unsupported),
            ("a=setup:actpass", "a=setup:holdconn", .unsupportedSetup(.holdconn), .unsupported),
            ("a=setup:actpass", "a=setup:both", .malformed(.invalid(.sdpSetup)), .malformed),
            ("a=setup:actpass", "a=ice-lite", .iceLite, .unsupported),
            ("a=fingerprint:sha-256", "a=fingerprint:md5", .unsupportedFingerprint, .unsupported),
            ("a=fingerprint:sha-256", "a=fingerprint:sha-1", .unsupportedFingerprint, .unsupported),
            (
                "a=fingerprint:sha-256 4E:", "a=fingerprint:sha-256 ", .malformed(.invalid(.sdpFingerprint)),
                .malformed
            ),
            ("H264/90000", "H265/90000", .noUsableCodec("1"), .notAcceptable),
            ("opus/48000/2", "opus/44100/2", .noUsableCodec("0"), .notAcceptable),
            ("packetization-mode=1", "packetization-mode=2", .noUsableCodec("1"), .notAcceptable),
            ("H264/90000", "H264/x", .malformed(.invalid(.sdpRTPMap)), .malformed),
            ("UDP/TLS/RTP/SAVPF 96", "RTP/AVP 96", .unsupportedTransport("1"), .unsupported),
            ("m=audio 9", "m=video 9", .tooManyTracks(.video), .unsupported),
            ("a=sendonly", "a=recvonly", .wrongDirection("0"), .unsupported),
            ("a=sendonly", "a=inactive", .noMedia, .malformed),
        ] as [(String, String, SessionOffer.Refusal, SessionOffer.RefusalKind)])
    func `an offer with what a publisher must not have is refused`(
        old: String, new: String, refusal: SessionOffer.Refusal, kind: SessionOffer.RefusalKind
    ) throws {
        expect(refusal, kind, try NegotiationFixture.offer("obs-publish", replacing: old, with: new))
    }

    @Test func `an offer that publishes two tracks of a kind is refused`() throws {
        expect(
            .tooManyTracks(.audio), .unsupported,
            try NegotiationFixture.offer("chrome-feed", replacing: "a=recvonly", with: "a=sendonly"))
    }

    /// An endpoint uses few m-lines, and reading useless ones costs as much.
    @Test(arguments: [("chrome-play", 5), ("chrome-publish", 5), ("chrome-feed", 6)])
    func `an offer with too many m-lines is refused`(name: String, limit: Int) throws {
        var offer = try NegotiationFixture.offer(name)
        let last = try #require(offer.media.last)
        while offer.media.count <= limit { offer.media.append(last) }
        expect(.tooManyLines(limit), .unsupported, offer, NegotiationFixture.purpose(of: name))
    }

    @Test func `an offer with too many session-level header extensions is refused`() throws {
        var offer = try NegotiationFixture.offer("chrome-play")
        for number in 0..<32 { offer.append(.extmap, "\(number + 100) urn:x:\(number)") }
        _ = try NegotiationFixture.negotiate(offer, .play)
        offer.append(.extmap, "99 urn:x:99")
        expect(.tooManyExtensions, .unsupported, offer, .play)
    }

    @Test func `a player that sends and a publisher that receives are refused`() throws {
        expect(.wrongDirection("0"), .unsupported, try NegotiationFixture.offer("chrome-publish"), .play)
        expect(.wrongDirection("0"), .unsupported, try NegotiationFixture.offer("chrome-play"), .publish)
    }

    @Test func `a player without a codec in common is refused`() throws {
        let offer = try SessionDescription(
            parsing: Fixtures.text("Offers/gstreamer-play.sdp").replacing("OPUS", with: "L16")
                .replacing("VP8", with: "H265"))
        expect(.noUsableCodec("audio0"), .notAcceptable, offer, .play)
    }

    @Test func `an offer of data channels alone is refused`() throws {
        var offer = try NegotiationFixture.offer("chrome-feed")
        offer.media = Array(offer.media.suffix(1))
        offer.removeAll(.group)
        for purpose in [SessionOffer.Purpose.publish, .play] {
            expect(.noMedia, .malformed, offer, purpose)
        }
    }

    @Test func `every offer is answered or refused, and none traps`() throws {
        var random = SeededGenerator(seed: 3_264)
        var answered = 0
        for name in Fixtures.offerNames {
            let lines = try NegotiationFixture.offer(name).text.split(separator: "\r\n").map { String($0) }
            for _ in 0..<8 {
                var mutated = lines
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let place = Int.random(in: 3..<mutated.count, using: &random)
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: mutated.remove(at: place)
                    case 1: mutated.insert(mutated.randomElement(using: &random) ?? "", at: place)
                    case 2: mutated.swapAt(place, Int.random(in: 3..<mutated.count, using: &random))
                    default:
                        mutated[place] = String(
                            mutated[place].dropLast(Int.random(in: 1...8, using: &random)))
                    }
                }
                guard let offer = try? SessionDescription(parsing: mutated.joined(separator: "\n")) else {
                    continue
                }
                for purpose in [SessionOffer.Purpose.publish, .play, .feed, .stage, .audience] {
                    guard let result = try? NegotiationFixture.negotiate(offer, purpose) else { continue }
                    answered += 1
                    let violations = try JSEPChecker.violations(of: result.answer, to: offer)
                    #expect(violations == [], "\(name): \(violations)")
                }
            }
        }
        #expect(answered > 80)
    }
}

@Suite struct ICEUpdates {
    private let plan = SessionPlan(
        remoteCredentials: ICECredentials(ufrag: "EsAw", password: Secret("P2uYro0UCOQ4zxjKXaWCBui1")),
        fingerprints: [])

    private func update(_ text: String) throws -> ICEUpdate {
        try ICEUpdate(SDPFragment(parsing: text), current: plan.remoteCredentials)
    }

    /// RFC 9725 §4.3.1, figure 3, shortened.
    @Test func `with the known credentials bring candidates`() throws {
        let text = """
            a=group:BUNDLE 0 1
            m=audio 9 UDP/TLS/RTP/SAVPF 111
            a=mid:0
            a=ice-ufrag:EsAw
            a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1
            a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1
            a=candidate:x 1 sctp 1 192.0.2.1 1 typ host
            a=end-of-candidates
            """
        guard case .candidates(let candidates, let isComplete) = try update(text) else {
            Issue.record("no candidates")
            return
        }
        #expect(candidates.map(\.port) == [61_764])
        #expect(isComplete)
    }

    @Test func `may leave the password out, or both`() throws {
        #expect(
            try update("a=ice-ufrag:EsAw\nm=audio 9 RTP/AVP 0\na=mid:0") == .candidates([], isComplete: false)
        )
        #expect(
            try update("m=audio 9 RTP/AVP 0\na=mid:0\na=end-of-candidates")
                == .candidates([], isComplete: true))
    }

    @Test func `with new credentials restart ICE`() throws {
        let fresh = ICECredentials(ufrag: "ysXw", password: Secret("vw5LmwG4y/e6dPP/zAP9Gp5k"))
        let text = "a=ice-ufrag:ysXw\na=ice-pwd:vw5LmwG4y/e6dPP/zAP9Gp5k\nm=audio 9 RTP/AVP 0\na=mid:0"
        #expect(try update(text) == .restart(fresh))
    }

    @Test(
        arguments: [
            "a=ice-ufrag:ysXw\na=mid:0", "a=ice-pwd:vw5LmwG4y/e6dPP/zAP9Gp5k\na=mid:0",
            "a=ice-ufrag:ysX\na=ice-pwd:vw5LmwG4y/e6dPP/zAP9Gp5k\na=mid:0",
            "a=ice-ufrag:EsAw\na=ice-pwd:vw5LmwG4y/e6dPP/zAP9Gp5k\na=mid:0",
        ])
    func `with half or malformed credentials are refused`(text: String) {
        #expect(throws: ICEUpdate.Refusal.invalidCredentials) { try update(text) }
    }

    @Test func `that restart are answered with new credentials and all candidates`() throws {
        let (plan, answer) = try NegotiationFixture.negotiate("chrome-play")
        let fragment = SDPFragment(restarting: plan, as: NegotiationFixture.transport)
        #expect(try SDPFragment(parsing: fragment.text) == fragment)
        #expect(fragment.isICELite)
        #expect(fragment.credentials == NegotiationFixture.credentials)
        #expect(fragment.allCandidates == answer.media[0].candidates)
        #expect(fragment.isComplete)
        #expect(fragment.media.map(\.mid) == ["0"])
        #expect(fragment.media.map(\.formats) == [["111"]])
        #expect(fragment.first(.group) == "BUNDLE 0 1")
    }

    @Test func `draw credentials of the length RFC 8445 asks for`() {
        var random = SeededGenerator(seed: 8_445)
        let first = ICECredentials(using: &random)
        let second = ICECredentials(using: &random)
        #expect(first.isValid && second.isValid)
        #expect(first != second)
        #expect(first.ufrag.utf8.count == 8)
        #expect(first.password.exposed.utf8.count == 24)
    }
}
