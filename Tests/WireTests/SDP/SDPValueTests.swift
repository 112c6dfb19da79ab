import Base
import TestSupport
import Testing
import Wire

/// A value parsed from `text`, after checking that it is written as it was read.
private func parsed<Value: SDPValue>(_ text: String, as type: Value.Type = Value.self) throws -> Value {
    let value = try Value(parsing: text)
    #expect(value.text == text)
    return value
}

@Suite struct SDPValues {
    @Test func `of rtpmap tell encoding, clock and channels`() throws {
        let opus: RTPMap = try parsed("111 opus/48000/2")
        #expect(opus == RTPMap(payloadType: 111, encoding: "opus", clockRate: 48_000, channels: 2))
        let vp8: RTPMap = try parsed("96 VP8/90000")
        #expect(vp8.encoding.matchesIgnoringCase("vp8"))
        #expect(vp8.channels == nil)
    }

    @Test func `of fmtp are found by name whatever its case`() throws {
        let h264: FormatParameters = try parsed(
            "102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f")
        #expect(h264[name: "Packetization-Mode"] == "1")
        #expect(h264[name: "mode"] == nil)
        let spaced = try FormatParameters(parsing: "111 minptime=10; useinbandfec=1 ;;")
        #expect(spaced.parameters.map(\.name) == ["minptime", "useinbandfec"])
        let red: FormatParameters = try parsed("63 111/111")
        #expect(red.parameters == [.init("111/111")])
    }

    @Test func `of rtcp-fb may hold for every payload type`() throws {
        #expect(try parsed("96 nack pli") == RTCPFeedback(payloadType: 96, kind: "nack pli"))
        #expect(try parsed("* transport-cc") == RTCPFeedback(payloadType: nil, kind: "transport-cc"))
    }

    @Test func `of extmap may have a direction and parameters`() throws {
        let plain: ExtensionMap = try parsed("4 urn:ietf:params:rtp-hdrext:sdes:mid")
        #expect(plain == ExtensionMap(id: 4, uri: "urn:ietf:params:rtp-hdrext:sdes:mid"))
        let full: ExtensionMap = try parsed("1/sendonly urn:ietf:params:rtp-hdrext:ssrc-audio-level vad=on")
        #expect(full.direction == .sendonly)
        #expect(full.parameters == "vad=on")
    }

    @Test func `of rid and simulcast keep alternatives and pauses`() throws {
        let rid: StreamRestriction = try parsed("hi send pt=97,98;max-width=1280")
        #expect(rid.id == "hi")
        #expect(rid.direction == .send)
        #expect(rid.parameters == [.init("pt", "97,98"), .init("max-width", "1280")])
        let simulcast: Simulcast = try parsed("send 1,~4;2;3 recv c")
        #expect(simulcast.send == [[.init("1"), .init("4", isPaused: true)], [.init("2")], [.init("3")]])
        #expect(simulcast.receive == [[.init("c")]])
    }

    @Test func `of ssrc, ssrc-group and msid`() throws {
        #expect(
            try parsed("314159 cname:q7 x") == SourceAttribute(ssrc: 314_159, name: "cname", value: "q7 x"))
        #expect(try parsed("4294967295 label") == SourceAttribute(ssrc: .max, name: "label", value: nil))
        #expect(try parsed("FID 1 2") == SourceGroup(semantics: "FID", ssrcs: [1, 2]))
        #expect(try parsed("- t0") == MediaStreamIdentifier(stream: "-", track: "t0"))
        #expect(try parsed("s") == MediaStreamIdentifier(stream: "s", track: nil))
    }

    @Test func `of candidate cover UDP, TCP, reflexive and named ones`() throws {
        let host: ICECandidate = try parsed("1 1 udp 2130706431 203.0.113.141 8998 typ host")
        #expect(host.transportAddress == TransportAddress("203.0.113.141:8998"))
        let reflexive: ICECandidate = try parsed(
            "2 1 udp 1694498815 192.0.2.3 45664 typ srflx raddr 203.0.113.141 rport 8998 generation 0")
        #expect(reflexive.relatedAddress == "203.0.113.141")
        #expect(reflexive.relatedPort == 8_998)
        #expect(reflexive.extensions == [SDPAttribute(.init("generation"), "0")])
        let tcp: ICECandidate = try parsed("3 1 tcp 1518280447 2001:db8::1 9 typ host tcptype active")
        #expect(tcp.tcpType == .active)
        #expect(tcp.transportAddress?.ip == IPAddress("2001:db8::1"))
        let named: ICECandidate = try parsed("4 1 udp 2113937151 b8a9-1f.local 51234 typ host")
        #expect(named.transportAddress == nil)
        #expect(try ICECandidate(parsing: "candidate:1 1 UDP 2130706431 203.0.113.141 8998 typ host") == host)
        #expect(throws: WireError.invalid(.sdpCandidate)) {
            try ICECandidate(parsing: "candidate:candidate:1 1 UDP 2130706431 203.0.113.141 8998 typ host")
        }
    }

    @Test func `of our candidates rank by order, UDP before TCP`() throws {
        let address = try #require(TransportAddress("192.0.2.1:7000"))
        let first = ICECandidate(host: address)
        #expect(first.text == "udp0 1 udp 2130706431 192.0.2.1 7000 typ host")
        let others = [
            ICECandidate(host: address, index: 1), ICECandidate(host: address, index: 70_000),
            ICECandidate(host: address, transport: .tcp),
            ICECandidate(host: address, transport: .tcp, index: 1),
        ]
        var last = first.priority
        for candidate in others {
            #expect(candidate.priority < last)
            last = candidate.priority
        }
        #expect(others[2].tcpType == .passive)
    }

    @Test func `of fingerprint are compared in one case`() throws {
        let digits = (0..<32).map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }
        let text = "sha-256 " + digits.joined(separator: ":").uppercased()
        let fingerprint: SDPFingerprint = try parsed(text)
        #expect(fingerprint.bytes == Array(0..<32))
        #expect(try SDPFingerprint(parsing: text.lowercased()) == fingerprint)
        #expect(try SDPFingerprint(parsing: text.replacing("sha", with: "SHA")) == fingerprint)
        for length in 0..<text.utf8.count {
            #expect(throws: WireError.invalid(.sdpFingerprint)) {
                try SDPFingerprint(parsing: String(text.prefix(length)))
            }
        }
    }

    @Test func `of group and setup`() throws {
        #expect(try parsed("BUNDLE 0 1 a") == MediaGroup(semantics: "BUNDLE", mids: ["0", "1", "a"]))
        #expect(try parsed("actpass") == SetupRole.actpass)
    }

    @Test func `of SCTP and direction are read from the m-line`() throws {
        let description = try SessionDescription(
            parsing: """
                v=0\r\no=- 1 2 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-options:trickle ice2\r\n\
                m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=sctp-port:5000\r\n\
                a=max-message-size:262144\r\na=sendonly\r\n
                """)
        let media = try #require(description.media.first)
        #expect(media.type == .application)
        #expect(try media.sctpPort() == 5_000)
        #expect(try media.maximumMessageSize() == 262_144)
        #expect(media.direction == .sendonly)
        #expect(media.direction?.reversed == .recvonly)
        #expect(description.direction == nil)
        #expect(description.iceOptions == ["trickle", "ice2"])
        let commas = try SDPFragment(parsing: "a=ice-options:ice2,trickle\n")
        #expect(commas.iceOptions == ["ice2", "trickle"])
        #expect(throws: WireError.invalid(.sdpPayloadType)) { try media.payloadTypes() }
    }

    @Test func `of credentials have the lengths of RFC 8839 and stay secret`() {
        let good = ICECredentials(ufrag: "8hhY", password: Secret("asd88fgpdd777uzjYhagZg"))
        #expect(good.isValid)
        #expect(!"\(good)".contains("asd88"))
        #expect(!ICECredentials(ufrag: "8hh", password: good.password).isValid)
        #expect(!ICECredentials(ufrag: "8hhY", password: Secret("asd88fgpdd777uzjYhagZ")).isValid)
        #expect(!ICECredentials(ufrag: "8h:hY", password: good.password).isValid)
        #expect(!ICECredentials(ufrag: "8h hY", password: good.password).isValid)
        #expect(!ICECredentials(ufrag: String(repeating: "x", count: 257), password: good.password).isValid)
    }
}

@Suite struct MalformedSDPValues {
    private func expectRefusal<Value: SDPValue>(_ type: Value.Type, _ texts: [String]) {
        for text in texts {
            #expect(throws: WireError.self, "\(type) of \(text)") { try type.init(parsing: text) }
        }
    }

    @Test func `are refused`() {
        expectRefusal(
            RTPMap.self,
            ["", "96", "96 VP8", "128 VP8/90000", "-1 VP8/90000", "96 VP8/x", "96 a/1/2/3", "96 /9"])
        expectRefusal(RTPMap.self, ["96 VP8/4294967296", "96 opus/48000/256", "+96 VP8/90000"])
        expectRefusal(FormatParameters.self, ["", "x a=b", "200 a=b"])
        expectRefusal(RTCPFeedback.self, ["", "96", "*", "x nack"])
        expectRefusal(
            ExtensionMap.self, ["", "3", "0 urn:x", "256 urn:x", "3/up urn:x", "x urn:x", "65536 urn:x"])
        expectRefusal(
            StreamRestriction.self,
            ["", "hi", "hi up", "h! send", String(repeating: "x", count: 33) + " send"])
        expectRefusal(
            Simulcast.self,
            ["", "send", "both a", "send a recv", "send a send b", "send a;;b", "send ~", "send a b"])
        expectRefusal(SourceAttribute.self, ["", "1", "x cname:y", "4294967296 cname:y", "1 :y"])
        expectRefusal(SourceGroup.self, ["", "FID x", "FID 1 -2"])
        expectRefusal(MediaStreamIdentifier.self, ["", "a b c"])
        expectRefusal(
            SDPFingerprint.self,
            ["", "sha-256", "sha-256 00:11", "md5 0:1", "md5 +1:22", "md5 00 11", "md5 00:"])
        expectRefusal(SDPFingerprint.self, ["x " + Array(repeating: "00", count: 65).joined(separator: ":")])
        expectRefusal(SetupRole.self, ["", "Active", "passive "])
        expectRefusal(MediaGroup.self, ["", "  "])
    }

    @Test func `candidates are refused when cut short or out of range, and left out of the list`() throws {
        let text = "1 1 udp 1 192.0.2.3 5 typ srflx raddr 203.0.113.141 rport 8 tcptype so"
        let words = text.split(separator: " ").map { String($0) }
        for count in 0..<words.count where count < 8 || count % 2 == 1 {
            expectRefusal(ICECandidate.self, [words.prefix(count).joined(separator: " ")])
        }
        expectRefusal(
            ICECandidate.self,
            [
                "1 1 sctp 1 192.0.2.3 5 typ host", "1 1 udp 4294967296 192.0.2.3 5 typ host",
                "1 1 udp 1 192.0.2.3 65536 typ host", "1 1 udp 1 192.0.2.3 5 host typ",
                "1 1 tcp 1 192.0.2.3 5 typ host tcptype x", "1 1 udp 1 192.0.2.3 5 typ host rport x",
            ])
        let fragment = try SDPFragment(parsing: "a=candidate:x\r\na=candidate:\(text)\r\n")
        #expect(fragment.candidates.map(\.type) == ["srflx"])
    }
}
