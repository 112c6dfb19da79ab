import Base
import TestSupport
import Testing
import Wire

/// The example of RFC 8866 §5, with an m-line of a browser added.
private let example = """
    v=0\r
    o=jdoe 3724394400 3724394405 IN IP4 198.51.100.1\r
    s=Call to John Smith\r
    i=SDP Offer #1\r
    u=http://www.jdoe.example.com/home.html\r
    e=Jane Doe <jane@jdoe.example.com>\r
    c=IN IP4 198.51.100.1\r
    t=0 0\r
    a=group:BUNDLE v\r
    a=ice-lite\r
    m=audio 49170 RTP/AVP 0\r
    m=video 9 UDP/TLS/RTP/SAVPF 99 96\r
    c=IN IP6 ::\r
    b=AS:2000\r
    a=mid:v\r
    a=rtpmap:99 h263-1998/90000\r
    a=rtcp-mux\r

    """

@Suite struct SessionDescriptions {
    @Test func `are written as they were read`() throws {
        let description = try SessionDescription(parsing: example)
        #expect(description.text == example)
        #expect(description.origin == "jdoe 3724394400 3724394405 IN IP4 198.51.100.1")
        #expect(description.name == "Call to John Smith")
        #expect(description.fields.count == 5)
        #expect(description.media.map(\.formats) == [["0"], ["99", "96"]])
        #expect(description.media[1].fields.map(\.value) == ["IN IP6 ::", "AS:2000"])
        #expect(description.media[1].isRTCPMultiplexed)
        #expect(!description.media[0].isRTCPMultiplexed)
    }

    @Test func `may end their lines with LF alone, and hold blank lines`() throws {
        let expected = try SessionDescription(parsing: example)
        let bare = String(example.unicodeScalars.filter { $0 != "\r" }) + "\n\n"
        #expect(try SessionDescription(parsing: bare) == expected)
        let mixed = example.replacing("a=mid:v\r\n", with: "a=mid:v\n", maxReplacements: 1)
        #expect(try SessionDescription(parsing: mixed) == expected)
    }

    @Test func `may lack the last line end`() throws {
        let text = String(example.unicodeScalars.dropLast(2))
        #expect(try SessionDescription(parsing: text) == SessionDescription(parsing: example))
    }

    @Test func `cut short anywhere are refused or still survive being written`() throws {
        let bytes = Array(example.utf8)
        let header = Array("v=0\r\no=jdoe 3724394400 3724394405 IN IP4 198.51.100.1\r\ns=".utf8).count
        for length in 0..<bytes.count {
            let prefix = Array(bytes[..<length])
            do {
                let description = try SessionDescription(parsing: prefix.span)
                #expect(length >= header)
                #expect(try SessionDescription(parsing: description.text) == description)
            } catch {
                #expect(error != .noRoom)
            }
        }
    }

    @Test(
        arguments: [
            ("", WireError.truncated),
            ("v=0\n", .truncated),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\n", .truncated),
            ("v=1\no=- 1 2 IN IP4 0.0.0.0\ns=-\n", .invalid(.sdpVersion)),
            ("o=- 1 2 IN IP4 0.0.0.0\nv=0\ns=-\n", .invalid(.sdpVersion)),
            ("v=0\no=- 1 2 IN IP4\ns=-\n", .invalid(.sdpOrigin)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\nt=0 0\n", .invalid(.sdpLine)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\nv=0\n", .invalid(.sdpLine)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\na\n", .invalid(.sdpLine)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\n a=x\n", .invalid(.sdpLine)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\na=:y\n", .invalid(.sdpAttribute)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\na=x y:z\n", .invalid(.sdpAttribute)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\nm=audio 9 RTP/AVP\n", .invalid(.sdpMedia)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\nm=audio x RTP/AVP 0\n", .invalid(.sdpMedia)),
            ("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\nm=audio 65536 RTP/AVP 0\n", .invalid(.sdpMedia)),
        ] as [(String, WireError)])
    func `that are malformed are refused`(text: String, error: WireError) {
        #expect(throws: error) { try SessionDescription(parsing: text) }
    }

    @Test func `with a CR or NUL inside a line are refused`() {
        for stray in ["\r", "\0"] {
            let text = "v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\na=x\(stray)y\n"
            #expect(throws: WireError.invalid(.sdpLine)) { try SessionDescription(parsing: text) }
        }
    }

    @Test func `that are no UTF-8 are refused`() {
        let bytes = Array("v=0\no=- 1 2 IN IP4 0.0.0.0\ns=".utf8) + [0xC3, 0x28, 0x0A]
        #expect(throws: WireError.invalid(.sdpText)) { try SessionDescription(parsing: bytes.span) }
    }

    @Test func `have limits on bytes, lines and m-lines`() throws {
        let head = "v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\n"
        let line = "m=audio 9 RTP/AVP 0\n"
        let full = try SessionDescription(parsing: head + String(repeating: line, count: 32))
        #expect(full.media.count == 32)
        #expect(throws: WireError.invalid(.sdpMediaCount)) {
            try SessionDescription(parsing: head + String(repeating: line, count: 33))
        }
        let lines = try SessionDescription(parsing: head + String(repeating: "a=x\n", count: 4_997))
        #expect(lines.attributes.count == 4_997)
        #expect(throws: WireError.invalid(.sdpLineCount)) {
            try SessionDescription(parsing: head + String(repeating: "a=x\n", count: 4_998))
        }
        let padding = 65_536 - head.utf8.count - 3
        let long = try SessionDescription(
            parsing: head + "i=" + String(repeating: "x", count: padding) + "\n")
        #expect(long.fields.count == 1)
        #expect(throws: WireError.invalid(.sdpLength)) {
            try SessionDescription(parsing: head + "i=" + String(repeating: "x", count: padding + 1) + "\n")
        }
    }

    @Test func `never trap on random bytes`() throws {
        var random = SeededGenerator(seed: 8_866)
        let alphabet = Array("v=0o- 1sa:m\r\n/;,~9IN4.".utf8)
        var parsed = 0
        for _ in 0..<2_000 {
            var bytes = Array(example.utf8)
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes[place] = alphabet.randomElement(using: &random) ?? 0
                default: bytes.remove(at: place)
                }
            }
            guard let description = try? SessionDescription(parsing: bytes.span) else { continue }
            parsed += 1
            #expect(try SessionDescription(parsing: description.text) == description)
        }
        #expect(parsed > 100)
    }
}

@Suite struct SDPFragments {
    /// The example of RFC 9725 §4.3.2.
    private let restart = """
        a=ice-options:trickle ice2\r
        a=group:BUNDLE 0 1\r
        m=audio 9 UDP/TLS/RTP/SAVPF 111\r
        a=mid:0\r
        a=ice-ufrag:ysXw\r
        a=ice-pwd:vw5LmwG4y/e6dPP/zAP9Gp5k\r
        a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1\r
        a=candidate:3471623853 1 udp 2122194687 198.51.100.2 61765 typ host generation 0 ufrag EsAw network-id 2\r
        a=candidate:473322822 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active generation 0 ufrag EsAw\r
        a=end-of-candidates\r

        """

    @Test func `tell credentials and candidates`() throws {
        let fragment = try SDPFragment(parsing: restart)
        #expect(fragment.text == restart)
        #expect(fragment.credentials?.ufrag == "ysXw")
        #expect(fragment.credentials?.password.exposed == "vw5LmwG4y/e6dPP/zAP9Gp5k")
        #expect(fragment.iceOptions == ["trickle", "ice2"])
        #expect(fragment.allCandidates.map(\.port) == [61_764, 61_765, 9])
        #expect(fragment.allCandidates[2].tcpType == .active)
        #expect(fragment.isComplete)
    }

    /// The form of RFC 8840 §9.2: credentials before the m-lines.
    @Test func `may hold the credentials before the m-lines`() throws {
        let fragment = try SDPFragment(
            parsing: "a=ice-ufrag:8hhY\na=ice-pwd:asd88fgpdd777uzjYhagZg\nm=audio 9 RTP/AVP 0\na=mid:a\n")
        #expect(fragment.credentials?.ufrag == "8hhY")
        #expect(fragment.media.map(\.mid) == ["a"])
        #expect(!fragment.isComplete)
    }

    @Test func `that are empty or hold other lines are refused`() {
        #expect(throws: WireError.truncated) { try SDPFragment(parsing: "\r\n") }
        #expect(throws: WireError.invalid(.sdpLine)) { try SDPFragment(parsing: "v=0\r\na=mid:0\r\n") }
        #expect(throws: WireError.invalid(.sdpLine)) { try SDPFragment(parsing: "t=0 0\r\na=mid:0\r\n") }
    }

    @Test func `cut short anywhere are refused or still survive being written`() throws {
        let bytes = Array(restart.utf8)
        for length in 0..<bytes.count {
            guard let fragment = try? SDPFragment(parsing: Array(bytes[..<length]).span) else { continue }
            #expect(try SDPFragment(parsing: fragment.text) == fragment)
        }
    }
}
