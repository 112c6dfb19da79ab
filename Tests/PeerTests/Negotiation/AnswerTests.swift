import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite struct Answers {
    @Test(arguments: Fixtures.offerNames)
    func `keep the rules of JSEP`(name: String) throws {
        let offer = try NegotiationFixture.offer(name)
        let (_, answer) = try NegotiationFixture.negotiate(name)
        #expect(try JSEPChecker.violations(of: answer, to: offer) == [])
        #expect(try SessionDescription(parsing: answer.text) == answer)
    }

    @Test(arguments: Fixtures.offerNames)
    func `keep the rules of JSEP on the stage, with hints and a preference`(name: String) throws {
        let policy = NegotiationPolicy(
            preferredVideoCodecs: [.av1, .h264],
            videoBitrate: .init(start: 1_000, minimum: 100, maximum: 2_500))
        let offer = try NegotiationFixture.offer(name)
        let (plan, answer) = try NegotiationFixture.negotiate(name, .stage, policy: policy)
        #expect(try JSEPChecker.violations(of: answer, to: offer) == [])
        let directions = offer.media.map { $0.type == .application ? .inactive : $0.direction ?? .sendrecv }
        #expect(plan.sources.count == directions.count(where: \.sends))
        #expect(plan.slots.count == directions.count(where: \.receives))
    }

    @Test func `an answer to OBS has only what OBS supports`() throws {
        let (_, answer) = try NegotiationFixture.negotiate("obs-publish")
        let digits = (0..<32).map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
        let transport = """
            a=candidate:udp0 1 udp 2130706431 192.0.2.1 7000 typ host\r
            a=candidate:udp1 1 udp 2130706175 2001:db8::1 7000 typ host\r
            a=end-of-candidates\r
            a=ice-ufrag:rostrum1\r
            a=ice-pwd:0123456789abcdefghijklmn\r
            a=fingerprint:sha-256 \(digits.joined(separator: ":"))\r
            a=setup:passive\r

            """
        let origin = try #require(answer.text.split(separator: "\r\n").dropFirst().first)
        #expect(
            answer.text == """
                v=0\r
                \(origin)\r
                s=-\r
                t=0 0\r
                a=group:BUNDLE 0 1\r
                a=msid-semantic:WMS *\r
                a=ice-lite\r
                a=ice-options:ice2 trickle\r
                m=audio 9 UDP/TLS/RTP/SAVPF 111\r
                c=IN IP4 0.0.0.0\r
                \(transport)\
                a=mid:0\r
                a=recvonly\r
                a=rtcp-mux\r
                a=rtpmap:111 opus/48000/2\r
                a=fmtp:111 minptime=10;useinbandfec=1;stereo=1\r
                m=video 9 UDP/TLS/RTP/SAVPF 96\r
                c=IN IP4 0.0.0.0\r
                \(transport)\
                a=mid:1\r
                a=recvonly\r
                a=rtcp-mux\r
                a=rtpmap:96 H264/90000\r
                a=rtcp-fb:96 goog-remb\r
                a=rtcp-fb:96 nack\r
                a=rtcp-fb:96 nack pli\r
                a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r

                """)
    }

    /// Whoever leaves the choice, or begins itself, is waited for.
    @Test(arguments: [("actpass", SetupRole.passive), ("active", .passive), ("passive", .active)])
    func `say who begins the handshake`(offered: String, answered: SetupRole) throws {
        let offer = try NegotiationFixture.offer(
            "obs-publish", replacing: "a=setup:actpass", with: "a=setup:" + offered)
        let (plan, answer) = try NegotiationFixture.negotiate(offer, .publish)
        for section in answer.media { #expect(try section.setup() == answered) }
        #expect(plan.beginsHandshake == (answered == .active))
    }

    @Test func `keep the client's order of codecs unless the operator prefers another`() throws {
        func order(_ policy: NegotiationPolicy) throws -> [String] {
            let (_, answer) = try NegotiationFixture.negotiate("chrome-publish", policy: policy)
            var names: [String] = []
            for name in try answer.media[1].rtpMaps().map(\.encoding)
            where name != "rtx" && name != names.last {
                names.append(name)
            }
            return names
        }
        #expect(try order(NegotiationPolicy()) == ["VP8", "H264", "AV1", "VP9"])
        #expect(
            try order(NegotiationPolicy(preferredVideoCodecs: [.av1, .vp9])) == ["AV1", "VP9", "VP8", "H264"])
        #expect(try order(NegotiationPolicy(videoCodecs: [.h264, .vp9])) == ["H264", "VP9"])
    }

    @Test func `carry hints for the bit rate to publishers alone`() throws {
        let policy = NegotiationPolicy(videoBitrate: .init(start: 1_200, maximum: 2_500))
        let (_, publisher) = try NegotiationFixture.negotiate("chrome-publish", policy: policy)
        #expect(
            publisher.text.contains("a=fmtp:96 x-google-start-bitrate=1200;x-google-max-bitrate=2500\r\n"))
        #expect(publisher.media[1].fields.map(\.value) == ["IN IP4 0.0.0.0", "AS:2500", "TIAS:2500000"])
        #expect(publisher.media[0].fields.count == 1)
        let (_, player) = try NegotiationFixture.negotiate("chrome-play", policy: policy)
        #expect(!player.text.contains("x-google"))
        #expect(!player.text.contains("b=AS"))
    }

    @Test(arguments: ["chrome-feed", "firefox-feed", "chrome-stage", "firefox-stage"])
    func `accept data channels where there is a use for them`(name: String) throws {
        let (plan, answer) = try NegotiationFixture.negotiate(name)
        let channel = try #require(answer.media.last)
        #expect(channel.type == .application && channel.port == 9)
        #expect(channel.formats == ["webrtc-datachannel"])
        #expect(try channel.sctpPort() == 5_000)
        #expect(try channel.maximumMessageSize() == 262_144)
        let mid = try #require(channel.mid)
        #expect(plan.dataChannel == DataChannelPlan(mid: mid, maximumMessage: 262_144))
        #expect(plan.bundledMIDs.last == mid)
    }

    @Test(arguments: ["chrome-stage", "firefox-stage"])
    func `let an audience receive and send nothing, whatever it offers`(name: String) throws {
        let (stage, _) = try NegotiationFixture.negotiate(name, .stage)
        let (plan, answer) = try NegotiationFixture.negotiate(name, .audience)
        #expect(!stage.sources.isEmpty)
        #expect(plan.sources.isEmpty)
        #expect(plan.slots.map(\.mid) == stage.slots.map(\.mid))
        #expect(plan.dataChannel == stage.dataChannel)
        for (offered, answered) in zip(try NegotiationFixture.offer(name).media, answer.media)
        where offered.type != .application {
            let direction = try #require(answered.direction)
            #expect(direction == .sendonly || direction == .inactive)
            if offered.direction == .sendonly { #expect(direction == .inactive) }
        }
    }

    @Test func `obey the client's limit of messages`() throws {
        for (line, limit) in [
            ("a=max-message-size:1000\r\n", 1_000), ("a=max-message-size:0\r\n", 262_144), ("", 65_536),
        ] {
            let offer = try NegotiationFixture.offer(
                "chrome-feed", replacing: "a=max-message-size:262144\r\n", with: line)
            #expect(try NegotiationFixture.negotiate(offer, .feed).plan.dataChannel?.maximumMessage == limit)
        }
    }

    @Test(arguments: [
        ("webrtc-datachannel", "5000"), ("UDP/DTLS/SCTP", "UDP/TLS/RTP/SAVPF"),
        ("sctp-port:5000", "sctp-port:9"),
    ])
    func `reject data channels of other kinds`(old: String, new: String) throws {
        let offer = try NegotiationFixture.offer("chrome-stage", replacing: old, with: new)
        #expect(throws: Never.self) {
            let (plan, answer) = try NegotiationFixture.negotiate(offer, .stage)
            #expect(plan.dataChannel == nil)
            #expect(answer.media.last?.port == 0)
        }
    }

    @Test func `reject data channels for players and leave them out of the BUNDLE`() throws {
        let (plan, answer) = try NegotiationFixture.negotiate("chrome-feed", .play)
        #expect(plan.dataChannel == nil)
        let channel = try #require(answer.media.last)
        #expect(channel.type == .application)
        #expect(channel.port == 0)
        #expect(channel.fields.map(\.value) == ["IN IP4 0.0.0.0"])
        #expect(channel.mid == "4")
        #expect(try answer.groups().map(\.mids) == [["0", "1", "2", "3"]])
    }

    @Test func `keep inactive m-lines inactive`() throws {
        let offer = try NegotiationFixture.offer(
            "chrome-publish", replacing: "a=sendonly", with: "a=inactive", everywhere: false)
        let (plan, answer) = try NegotiationFixture.negotiate(offer, .publish)
        #expect(answer.media.map(\.direction) == [.inactive, .recvonly])
        #expect(plan.sources.map(\.mid) == ["1"])
        #expect(plan.bundledMIDs == ["0", "1"])
        #expect(try JSEPChecker.violations(of: answer, to: offer) == [])
    }

    @Test func `leave an m-line rejected that the client offers with port 0`() throws {
        let offer = try NegotiationFixture.offer(
            "pion-play", replacing: "m=audio 9", with: "m=audio 0")
        let (plan, answer) = try NegotiationFixture.negotiate(offer, .play)
        #expect(answer.media.map(\.port) == [0, 9])
        #expect(plan.slots.map(\.mid) == ["1"])
        #expect(try JSEPChecker.violations(of: answer, to: offer) == [])
    }

    @Test func `an answer to a player rejects only the m-line with unknown codecs`() throws {
        let offer = try NegotiationFixture.offer(
            "gstreamer-play", replacing: "OPUS/48000/2", with: "L16/48000/2")
        let (plan, answer) = try NegotiationFixture.negotiate(offer, .play)
        #expect(plan.slots.map(\.mid) == ["video1"])
        #expect(answer.media.map(\.port) == [0, 9])
        #expect(!answer.media[1].candidates.isEmpty)
        #expect(try JSEPChecker.violations(of: answer, to: offer) == [])
    }

    @Test func `an answer to one m-line without BUNDLE has no BUNDLE`() throws {
        let text = try Fixtures.text("Offers/obs-publish.sdp")
        let audio = try #require(text.firstRange(of: "m=video")).lowerBound
        let offer = try SessionDescription(
            parsing: String(text[..<audio]).replacing("a=group:BUNDLE 0 1\r\n", with: ""))
        let (plan, answer) = try NegotiationFixture.negotiate(offer, .publish)
        #expect(plan.sources.count == 1)
        #expect(try answer.groups().isEmpty)
        #expect(answer.media[0].isEndOfCandidates)
        #expect(try JSEPChecker.violations(of: answer, to: offer) == [])
    }

    @Test func `answers reverse the directions of extensions`() throws {
        let (_, answer) = try NegotiationFixture.negotiate("firefox-publish-simulcast")
        let maps = try answer.media[1].extensionMaps()
        #expect(
            maps.first { $0.uri == RTPExtensionURI.rtpStreamID.rawValue }?.text.hasPrefix("9/recvonly")
                == true)
        // Offered for receiving alone, on an m-line that does not receive.
        #expect(!maps.contains { $0.uri == RTPExtensionURI.playoutDelay.rawValue })
    }

    @Test func `cut the payload types of a layer down to those accepted`() throws {
        let offer = try NegotiationFixture.offer(
            "chrome-publish-simulcast", replacing: "a=rid:m send",
            with: "a=rid:m send pt=118,96;max-width=640")
        let narrowed = try SessionDescription(
            parsing: offer.text.replacing("a=rid:l send", with: "a=rid:l send pt=118"))
        let (plan, answer) = try NegotiationFixture.negotiate(narrowed, .publish)
        #expect(plan.sources[1].rids == ["h", "m"])
        #expect(
            try answer.media[1].streamRestrictions().map(\.text) == ["h recv", "m recv pt=96;max-width=640"])
        #expect(answer.media[1].first(.simulcast) == "recv h;m")
    }

    @Test func `answers accept each layer once, paused ones too, and at most eight`() throws {
        let rids = (0..<12).map { "a=rid:r\($0) send\r\n" }.joined()
        let list = "h;~m;h,m;l;x;" + (0..<12).map { "r\($0)" }.joined(separator: ";")
        let offer = try NegotiationFixture.offer(
            "chrome-publish-simulcast", replacing: "a=simulcast:send h;m;l\r\n",
            with: rids + "a=rid:h send\r\na=simulcast:send \(list)\r\n")
        let (plan, answer) = try NegotiationFixture.negotiate(offer, .publish)
        #expect(plan.sources[1].rids == ["h", "m", "l", "r0", "r1", "r2", "r3", "r4"])
        #expect(try JSEPChecker.violations(of: answer, to: offer) == [])
    }

    @Test func `differ from session to session`() throws {
        var random = SeededGenerator(seed: 2)
        let offer = try SessionOffer(NegotiationFixture.offer("chrome-play"), for: .play)
        let first = try Negotiator().answer(to: offer, as: NegotiationFixture.transport, using: &random)
        let second = try Negotiator().answer(to: offer, as: NegotiationFixture.transport, using: &random)
        #expect(Set(first.plan.slots.map(\.ssrc)).isDisjoint(with: second.plan.slots.map(\.ssrc)))
        #expect(first.plan.slots[0].cname != second.plan.slots[0].cname)
        #expect(first.description.origin != second.description.origin)
    }
}
