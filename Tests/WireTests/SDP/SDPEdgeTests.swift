import Base
import TestSupport
import Testing
import Wire

@Suite struct `Attribute values that are oddly written` {
    @Test func `of fmtp keep equals signs, and what has no name`() throws {
        let found = try FormatParameters(parsing: "97 sprop-parameter-sets=Z0IACg==,aM4=; x=;=y;;z ")
        #expect(
            found.parameters == [
                .init("sprop-parameter-sets", "Z0IACg==,aM4="), .init("x", ""), .init("", "y"), .init("z"),
            ])
        #expect(try FormatParameters(parsing: "97 ; ;; ").parameters.isEmpty)
        #expect(try FormatParameters(parsing: "97").parameters.isEmpty)
    }

    @Test func `of fmtp count by the first of those with one name`() throws {
        let found = try FormatParameters(parsing: "97 a=1;A=2")
        #expect(found[name: "A"] == "1")
        // There, but without a value.
        let bare = try FormatParameters(parsing: "97 a;a=1")
        #expect(bare[name: "a"] == nil)
    }

    /// A `Character` would join the separator with the mark behind it.
    @Test func `are divided at separators that a combining mark follows`() throws {
        let found = try FormatParameters(parsing: "96 a=1;\u{301}b=\u{301}2")
        #expect(found.parameters.count == 2)
        #expect(found[name: "a"] == "1")
        let words = try MediaGroup(parsing: "LS a \u{301}b")
        #expect(words.mids.count == 2)
        let source = try SourceAttribute(parsing: "1 cname:\u{301}x")
        #expect(source.name == "cname")
    }

    @Test func `of rtcp-fb and extmap may have more spaces than they need`() throws {
        #expect(try RTCPFeedback(parsing: " 96  nack   pli ").kind == "nack pli")
        let map = try ExtensionMap(parsing: " 4  urn:x   a  b")
        #expect(map == ExtensionMap(id: 4, uri: "urn:x", parameters: "a  b"))
        #expect(try ExtensionMap(parsing: "4 urn:x  ").parameters == nil)
        // A direction that is begun but missing is none.
        #expect(try ExtensionMap(parsing: "4/ urn:x").direction == nil)
    }

    @Test(arguments: [(0, false), (1, true), (255, true), (256, false), (4_095, false), (4_096, true)])
    func `of extmap have ids that exist`(id: Int, isGood: Bool) {
        let map = try? ExtensionMap(parsing: "\(id) urn:x")
        #expect((map != nil) == isGood)
    }

    @Test func `of ssrc keep colons and nothing`() throws {
        let colons = try SourceAttribute(parsing: "1 msid:a b:c")
        #expect(colons == SourceAttribute(ssrc: 1, name: "msid", value: "a b:c"))
        let empty = try SourceAttribute(parsing: "0 cname:")
        #expect(empty == SourceAttribute(ssrc: 0, name: "cname", value: ""))
    }

    @Test(arguments: [
        "1 1 udp 1 192.0.2.3 5 TYP host", "1 65536 udp 1 192.0.2.3 5 typ host",
        "1 1 udp -1 192.0.2.3 5 typ host", "1 1 udp 1 192.0.2.3 +5 typ host",
        "1 1 tcp 1 192.0.2.3 9 typ host tcptype ACTIVE", "a:b 1 udp 1 192.0.2.3 5 typ host",
        "1 1 udp 1 192.0.2.3 5 typ srflx raddr", "1 1 udp 1 192.0.2.3 5 typ srflx rport 65536",
    ])
    func `of candidate are refused for one wrong word`(text: String) {
        #expect(throws: WireError.invalid(.sdpCandidate)) { try ICECandidate(parsing: text) }
    }

    @Test func `are compared without regard to the case of ASCII letters, and of no others`() {
        #expect("VP8".matchesIgnoringCase("vp8") && "".matchesIgnoringCase(""))
        #expect(!"É".matchesIgnoringCase("é") && !"vp8".matchesIgnoringCase("vp80"))
        // `[` and `{`, `@` and the accent differ by the bit that tells letters apart.
        #expect(!"[".matchesIgnoringCase("{") && !"@".matchesIgnoringCase("`"))
        // The sign of the unit kelvin.
        #expect(!"\u{212A}".matchesIgnoringCase("k"))
    }

    @Test(arguments: [
        ("", false), ("a", true), ("0", true), ("a b", false), ("a/b", false), ("a:b", false), ("é", false),
        ("a=b", false), ("{a}", true), ("a\u{7F}", false), ("!#$%&'*+-.^_`|~", true), ("(a)", false),
    ])
    func `are tokens of certain characters`(text: String, isToken: Bool) {
        #expect(text.isSDPToken() == isToken)
    }

    @Test func `are tokens of limited length`() {
        let longest = String(repeating: "x", count: 255)
        #expect(longest.isSDPToken() && !(longest + "x").isSDPToken())
        #expect("abc".isSDPToken(limit: 3) && !"abcd".isSDPToken(limit: 3))
    }
}

@Suite struct `An m-line with odd attributes` {
    private var media = MediaDescription(media: "application", port: 9, transport: "X", formats: ["y"])

    @Test(arguments: ["", "x", "65536", "-1", "5000 "])
    mutating func `has no SCTP port that is no number of a port`(text: String) {
        media.append(.sctpPort, text)
        let line = media
        #expect(throws: WireError.invalid(.sdpSCTPPort)) { try line.sctpPort() }
    }

    @Test(arguments: ["", "x", "18446744073709551616", "1.5"])
    mutating func `has no size of messages that is no number`(text: String) {
        media.append(.maxMessageSize, text)
        let line = media
        #expect(throws: WireError.invalid(.sdpMaximumMessageSize)) { try line.maximumMessageSize() }
    }

    @Test mutating func `may say nothing of both, or the largest size there is`() throws {
        #expect(try media.sctpPort() == nil)
        #expect(try media.maximumMessageSize() == nil)
        media.append(.maxMessageSize, "18446744073709551615")
        #expect(try media.maximumMessageSize() == UInt64.max)
    }

    @Test mutating func `has the first direction, which is no attribute with a value`() {
        media.append(SDPAttribute.Name("sendonly"), "x")
        #expect(media.direction == nil)
        media.append(SDPAttribute.Name("recvonly"))
        media.append(SDPAttribute.Name("sendrecv"))
        #expect(media.direction == .recvonly)
    }

    @Test func `names each payload type once, in the order of the first`() throws {
        let line = MediaDescription(
            media: "audio", port: 9, transport: "X", formats: ["111", "0", "111", "96", "0"])
        #expect(try line.payloadTypes() == [111, 0, 96])
        for format in ["128", "-1", "+1", "", "1 "] {
            let other = MediaDescription(media: "audio", port: 9, transport: "X", formats: ["0", format])
            #expect(throws: WireError.invalid(.sdpPayloadType)) { try other.payloadTypes() }
        }
    }
}

@Suite struct `A trickle fragment` {
    @Test func `takes its credentials from the first place that has both halves`() throws {
        let password = "asd88fgpdd777uzjYhagZg"
        let half = try SDPFragment(
            parsing: """
                a=ice-ufrag:aaaa
                m=audio 9 RTP/AVP 0
                a=ice-pwd:\(password)
                m=video 9 RTP/AVP 0
                a=ice-ufrag:bbbb
                a=ice-pwd:\(password)
                """)
        #expect(half.credentials?.ufrag == "bbbb")
        let apart = try SDPFragment(
            parsing: "a=ice-ufrag:aaaa\nm=audio 9 RTP/AVP 0\na=ice-pwd:\(password)\n")
        #expect(apart.credentials == nil)
    }

    @Test func `has candidates before the m-lines and in them, in this order`() throws {
        let fragment = try SDPFragment(
            parsing: """
                a=candidate:1 1 udp 1 192.0.2.1 1 typ host
                m=audio 9 RTP/AVP 0
                a=candidate:1 1 udp 1 192.0.2.1 2 typ host
                m=video 9 RTP/AVP 0
                a=candidate:1 1 udp 1 192.0.2.1 3 typ host
                a=end-of-candidates
                """)
        #expect(fragment.allCandidates.map(\.port) == [1, 2, 3])
        #expect(fragment.isComplete)
    }

    @Test func `has at most the bytes and m-lines that are allowed`() throws {
        let longest = "a=x:" + String(repeating: "y", count: SDPFragment.maximumLength - 4)
        #expect(try SDPFragment(parsing: longest).attributes.count == 1)
        #expect(throws: WireError.invalid(.sdpLength)) { try SDPFragment(parsing: longest + "y") }
        let line = "m=audio 9 RTP/AVP 0\n"
        let most = String(repeating: line, count: SessionDescription.maximumMediaCount)
        #expect(try SDPFragment(parsing: most).media.count == SessionDescription.maximumMediaCount)
        #expect(throws: WireError.invalid(.sdpMediaCount)) { try SDPFragment(parsing: most + line) }
    }

    /// Either would let one attribute become two in what is sent on.
    @Test(arguments: ["a=x:y\rz\n", "a=x:y\u{0}z\n", "a=x:y\r\r\n"])
    func `has no stray ends of lines in its values`(text: String) {
        #expect(throws: WireError.invalid(.sdpLine)) { try SDPFragment(parsing: text) }
    }

    @Test(arguments: ["a=\n", "a=:x\n", "a=a b:x\n", "a=é:x\n"])
    func `has attributes with a name`(text: String) {
        #expect(throws: WireError.self) { try SDPFragment(parsing: text) }
    }
}
