import TestSupport
import Testing
import Wire

/// Makes values of attributes at random, with all that their grammar allows.
private struct ValueMaker {
    private var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int {
        .random(in: range, using: &random)
    }

    mutating func flip() -> Bool {
        .random(using: &random)
    }

    /// A token, as names are.
    mutating func token(_ most: Int = 12, of letters: String = "abcXYZ019-_.+!%") -> String {
        let letters = Array(letters)
        var text = ""
        for _ in 0..<number(1...most) { text.append(letters[number(0...(letters.count - 1))]) }
        return text
    }

    mutating func several<Element>(_ range: ClosedRange<Int>, make: (inout Self) -> Element) -> [Element] {
        var made: [Element] = []
        for _ in 0..<number(range) { made.append(make(&self)) }
        return made
    }

    mutating func word() -> UInt32 {
        .random(in: 0...UInt32.max, using: &random)
    }

    mutating func map() -> RTPMap {
        RTPMap(
            payloadType: UInt8(number(0...127)), encoding: token(), clockRate: word(),
            channels: flip() ? number(0...255) : nil)
    }

    mutating func parameters() -> [FormatParameters.Parameter] {
        several(1...6) { maker in
            // A value may have equals signs, slashes, and spaces within.
            .init(maker.token(), maker.flip() ? maker.token() + "= /" + maker.token() : nil)
        }
    }

    mutating func restriction() -> StreamRestriction {
        StreamRestriction(
            id: token(32, of: "abzABZ09-_"), direction: flip() ? .send : .recv,
            parameters: flip() ? parameters() : [])
    }

    mutating func simulcast() -> Simulcast {
        let sends = flip()
        return Simulcast(
            send: sends ? alternatives() : [], receive: !sends || flip() ? alternatives() : [])
    }

    private mutating func alternatives() -> [[Simulcast.Alternative]] {
        several(1...4) { maker in
            maker.several(1...3) { maker in
                .init(maker.token(8, of: "abzABZ09-_"), isPaused: maker.flip())
            }
        }
    }

    mutating func extensionMap() -> ExtensionMap {
        let directions: [MediaDirection?] = [nil, .sendrecv, .sendonly, .recvonly, .inactive]
        return ExtensionMap(
            id: UInt16(flip() ? number(1...255) : number(4_096...4_351)),
            direction: directions[number(0...4)], uri: "urn:" + token(40),
            parameters: flip() ? token() + " " + token() : nil)
    }

    mutating func candidate() throws -> ICECandidate {
        let addresses = ["192.0.2.1", "2001:db8::1", "e3a1-77.local"]
        let isTCP = flip()
        var candidate = try ICECandidate(
            parsing: "\(token()) \(number(1...65_535)) \(isTCP ? "tcp" : "udp") \(word()) "
                + "\(addresses[number(0...2)]) \(number(0...65_535)) typ \(token())")
        if flip() { candidate.relatedAddress = addresses[number(0...2)] }
        if flip() { candidate.relatedPort = UInt16(number(0...65_535)) }
        if isTCP { candidate.tcpType = flip() ? .active : .so }
        candidate.extensions = several(0...3) { SDPAttribute(.init("x" + $0.token()), $0.token()) }
        return candidate
    }

    mutating func fingerprint() -> SDPFingerprint {
        let kinds = [("sha-256", 32), ("sha-384", 48), ("sha-512", 64), ("md5", 16)]
        let (algorithm, length) = kinds[number(0...3)]
        var bytes: [UInt8] = []
        for _ in 0..<length { bytes.append(UInt8(number(0...255))) }
        return SDPFingerprint(algorithm: algorithm, bytes: bytes)
    }

    mutating func description() -> SessionDescription {
        let session = attributes()
        let media = several(0...8) { $0.mediaDescription() }
        return SessionDescription(
            origin: "- \(word()) \(number(0...9)) IN IP4 0.0.0.0", name: flip() ? "-" : "é √",
            attributes: session, media: media)
    }

    private mutating func mediaDescription() -> MediaDescription {
        var media = MediaDescription(
            media: token(), port: UInt16(number(0...65_535)), transport: "UDP/" + token(),
            formats: several(1...5) { $0.token() })
        if flip() { media.fields = [SDPField(UInt8(ascii: "c"), "IN IP4 0.0.0.0")] }
        media.attributes = attributes()
        return media
    }

    private mutating func attributes() -> [SDPAttribute] {
        several(0...10) { maker in
            let value: String? = maker.flip() ? maker.token() + ": é=" + maker.token() : nil
            return SDPAttribute(.init(maker.token()), value)
        }
    }
}

@Suite struct `SDP made at random` {
    private func expectSame<Value: SDPValue>(_ value: Value) throws {
        #expect(try Value(parsing: value.text) == value, "\(value.text)")
    }

    @Test(arguments: 0..<100 as Range<UInt64>)
    func `has values that are read as written`(seed: UInt64) throws {
        var maker = ValueMaker(seed: seed)
        try expectSame(maker.map())
        try expectSame(FormatParameters(payloadType: UInt8(seed), parameters: maker.parameters()))
        try expectSame(RTCPFeedback(payloadType: maker.flip() ? 96 : nil, kind: "nack " + maker.token()))
        try expectSame(maker.restriction())
        try expectSame(maker.simulcast())
        try expectSame(maker.extensionMap())
        try expectSame(maker.candidate())
        try expectSame(maker.fingerprint())
        try expectSame(MediaGroup(semantics: maker.token(), mids: maker.several(0...5) { $0.token() }))
        try expectSame(SourceGroup(semantics: maker.token(), ssrcs: maker.several(0...5) { $0.word() }))
        try expectSame(SourceAttribute(ssrc: maker.word(), name: maker.token(), value: maker.token() + ": x"))
        try expectSame(MediaStreamIdentifier(stream: maker.token(), track: maker.flip() ? "t" : nil))
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `is read as it was written, whatever ends its lines`(seed: UInt64) throws {
        var maker = ValueMaker(seed: seed)
        let description = maker.description()
        let text = description.text
        #expect(try SessionDescription(parsing: text) == description)
        let ends = ["\n", "\r\n", "\n\n", "\r\n\r\n"]
        var mixed = ""
        for line in text.split(separator: "\r\n") {
            let end = ends[maker.number(0...3)]
            mixed += "\(line)\(end)"
        }
        #expect(try SessionDescription(parsing: mixed) == description)
    }
}

@Suite struct `A value of SDP as others write it` {
    /// Some clients put spaces before the semicolons too.
    @Test func `may have spaces around each parameter, but not in what is compared`() throws {
        let spaced = try FormatParameters(parsing: "96  profile-id=2 ; packetization-mode=1  ;x ; ; y=a b ")
        #expect(
            spaced.parameters == [
                .init("profile-id", "2"), .init("packetization-mode", "1"), .init("x"), .init("y", "a b"),
            ])
        let restriction = try StreamRestriction(parsing: "hi send pt=96 ; max-width=640 ")
        #expect(restriction.parameters == [.init("pt", "96"), .init("max-width", "640")])
    }

    @Test(arguments: ["-0", "+0", "-1", "+a", "0x", " 0", "g0", "é"])
    func `has no byte of a fingerprint that is not two digits`(pair: String) {
        let good = Array(repeating: "00", count: 32)
        for place in [0, 15, 31] {
            var pairs = good
            pairs[place] = pair
            #expect(throws: WireError.invalid(.sdpFingerprint)) {
                try SDPFingerprint(parsing: "sha-256 " + pairs.joined(separator: ":"))
            }
        }
    }

    @Test(arguments: ["", "-1", "+1", "1.0", "65536", "0x10", "5000 ", "٥"])
    func `has no port of SCTP that is not a number of 16 bits`(text: String) {
        var media = MediaDescription(media: "application", port: 9, transport: "x", formats: ["y"])
        media.append(.sctpPort, text)
        #expect(throws: WireError.invalid(.sdpSCTPPort)) { try media.sctpPort() }
    }

    @Test func `names no size of messages that 64 bits cannot say`() throws {
        var media = MediaDescription(media: "application", port: 9, transport: "x", formats: ["y"])
        #expect(try media.maximumMessageSize() == nil)
        media.append(.maxMessageSize, "18446744073709551615")
        #expect(try media.maximumMessageSize() == UInt64.max)
        media.attributes = []
        media.append(.maxMessageSize, "18446744073709551616")
        #expect(throws: WireError.invalid(.sdpMaximumMessageSize)) { try media.maximumMessageSize() }
    }
}
