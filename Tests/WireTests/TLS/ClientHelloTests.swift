import TestSupport
import Testing

@testable import Wire

/// Builds what a client sends first.
private struct Hello {
    var protocols: [String]?
    /// Beside ALPN, by type.
    var others: [(UInt16, [UInt8])] = [(0, [0, 1, 0]), (51, [9, 9])]
    var sessionID: [UInt8] = []

    private static func vector8(_ content: [UInt8]) -> [UInt8] { [UInt8(content.count)] + content }

    private static func vector16(_ content: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.append(bigEndian: UInt16(content.count))
        return result + content
    }

    var body: [UInt8] {
        var extensions: [UInt8] = []
        var all = others
        if let protocols {
            all.insert(
                (16, Self.vector16(protocols.flatMap { Self.vector8(Array($0.utf8)) })), at: all.count / 2)
        }
        for (type, content) in all {
            extensions.append(bigEndian: type)
            extensions += Self.vector16(content)
        }
        return [3, 3] + [UInt8](repeating: 7, count: 32) + Self.vector8(sessionID)
            + Self.vector16([0x13, 0x01]) + Self.vector8([0]) + Self.vector16(extensions)
    }

    static func message(_ body: [UInt8]) -> [UInt8] {
        [1, UInt8(body.count >> 16), UInt8(body.count >> 8 & 0xFF), UInt8(body.count & 0xFF)] + body
    }

    static func records(_ message: [UInt8], of length: Int = 16_384) -> [UInt8] {
        stride(from: 0, to: message.count, by: length).flatMap { start -> [UInt8] in
            [22, 3, 1] + vector16(Array(message[start..<min(start + length, message.count)]))
        }
    }

    var stream: [UInt8] { Self.records(Self.message(body)) }
}

@Suite struct `A ClientHello` {
    private func names(_ stream: [UInt8]) throws -> [String]? {
        try ClientHello(startOf: stream.span)?.protocols.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `tells the names of protocols, in order`() throws {
        #expect(try names(Hello(protocols: ["h2", "http/1.1"]).stream) == ["h2", "http/1.1"])
        #expect(try names(Hello(protocols: ["stun.turn"], sessionID: [1, 2, 3]).stream) == ["stun.turn"])
        #expect(try names(Hello().stream) == [])
        // What comes behind it is of no interest.
        #expect(try names(Hello(protocols: ["a"]).stream + [20, 3, 3, 0, 1, 1]) == ["a"])
    }

    @Test func `may do without extensions`() throws {
        let body = Hello(others: []).body.dropLast(2)
        #expect(try names(Hello.records(Hello.message(Array(body)))) == [])
    }

    @Test func `is joined from records, and waited for`() throws {
        let message = Hello.message(
            Hello(protocols: ["h2"], others: [(9, [UInt8](repeating: 1, count: 900))]).body)
        for length in [1, 2, 3, 7, 100, 500] {
            let stream = Hello.records(message, of: length)
            for count in 0..<stream.count {
                #expect(try names(Array(stream[..<count])) == nil, "\(count) of \(stream.count)")
            }
            #expect(try names(stream) == ["h2"])
        }
    }

    @Test func `may be long, but not longer than what is looked at`() throws {
        func stream(_ padding: Int) -> [UInt8] {
            Hello(protocols: ["h2"], others: [(21, [UInt8](repeating: 0, count: padding))]).stream
        }
        #expect(try names(stream(16_000)) == ["h2"])
        #expect(throws: WireError.self) { try names(stream(17_000)) }
        // Records of a byte each never hold all of it in time.
        let slow = Hello.records([1, 0, 0x3F, 0] + [UInt8](repeating: 0, count: 16_000), of: 1)
        #expect(try names(Array(slow[..<(ClientHello.longestStream - 1)])) == nil)
        #expect(throws: WireError.self) { try names(Array(slow[..<ClientHello.longestStream])) }
    }

    @Test(
        arguments: [
            // Another record, an empty one, one that is too long, another version, another message.
            [23, 3, 1, 0, 1, 1], [22, 3, 1, 0, 0], [22, 3, 1, 0x40, 1], [22, 2], [22, 3, 1, 0, 1, 2],
            // A second record that is none of the handshake.
            [22, 3, 1, 0, 2, 1, 0, 21],
            // A message that is too long, and one that ends within its version.
            [22, 3, 1, 0, 4, 1, 1, 0, 0], [22, 3, 1, 0, 5, 1, 0, 0, 1, 3],
        ] as [[UInt8]])
    func `is nothing else`(_ stream: [UInt8]) {
        #expect(throws: WireError.self) { try names(stream) }
    }

    @Test func `has no vector that ends elsewhere than it says`() throws {
        let body = Hello(protocols: ["h2", "http/1.1"], sessionID: [5, 5]).body
        for cut in 1..<body.count {
            let stream = Hello.records(Hello.message(Array(body.dropLast(cut))))
            // Before the extensions it may end.
            if let found = try? names(stream) { #expect(found == []) }
        }
        for (content, isGood) in [
            ([0, 2, 1, 0x61], true), ([0, 3, 1, 0x61], false), ([0, 2, 2, 0x61], false), ([0, 1, 0], false),
            ([0, 0], false), ([0], false), ([0, 2, 1, 0x61, 0], false),
        ] as [([UInt8], Bool)] {
            let stream = Hello(others: [(16, content)]).stream
            #expect((try? names(stream)) == (isGood ? ["a"] : nil), "\(content)")
        }
        // Twice is once too often.
        let twice = Hello(protocols: ["a"], others: [(16, [0, 2, 1, 0x62])]).stream
        #expect(throws: WireError.self) { try names(twice) }
    }
}

@Suite struct `What comes first by TCP` {
    private static let stun: [UInt8] = [0, 3, 0, 8, 0x21, 0x12, 0xA4, 0x42] + [UInt8](0..<12)

    private func opening(_ stream: [UInt8]) throws -> StreamOpening? { try StreamOpening(stream.span) }

    @Test func `tells TURN and ICE over TCP apart`() throws {
        let framed = [0, UInt8(Self.stun.count)] + Self.stun
        for count in 0..<Self.stun.count {
            #expect(try opening(Array(Self.stun[..<count])) == (count < 8 ? nil : .stun))
        }
        for count in 0..<framed.count {
            #expect(try opening(Array(framed[..<count])) == (count < 10 ? nil : .framedSTUN))
        }
    }

    @Test func `tells what TLS is for, where a client says it`() throws {
        let told: [([String]?, StreamOpening.Application?)] = [
            (["h2", "http/1.1"], .http), (["http/1.1"], .http), (["http/1.0"], .http),
            (["stun.turn"], .turn), (["stun.nat-discovery"], .turn), (["stun.turn", "http/1.1"], .turn),
            (["http/1.1", "stun.turn", "stun.nat-discovery"], .turn), (["x", "http/1.1"], .http), (nil, nil),
            (["xmpp-client"], nil),
        ]
        for (protocols, application) in told {
            #expect(try opening(Hello(protocols: protocols).stream) == .tls(application))
        }
    }

    @Test func `tells text by its first letter`() throws {
        #expect(try opening(Array("G".utf8)) == .text)
        #expect(try opening(Array("get / HTTP/1.1".utf8)) == .text)
    }

    @Test(
        arguments: [
            [0x80], [0x04], [0x15, 3, 1], [0x40, 0, 0, 0], [0x20], [0xFF],
            // A frame without a check, and one of something else that is no request of STUN.
            [0, 10, 0x80, 1, 2, 3, 4, 5, 6, 7], [0, 10, 9, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42],
        ] as [[UInt8]])
    func `is nothing else`(_ stream: [UInt8]) {
        #expect(throws: WireError.self) { try opening(stream) }
    }

    @Test(arguments: [1, 2, 7, 100, 1_000, 16_384])
    func `is looked at a few times only, however small its pieces are`(recordLength: Int) throws {
        // What is looked at has room for few of the bytes if each has a head of its own.
        let padding = recordLength < 5 ? 2_000 : recordLength < 50 ? 8_000 : 12_000
        let hello = Hello(protocols: ["h2"], others: [(21, [UInt8](repeating: 0, count: padding))])
        let stream = Hello.records(Hello.message(hello.body), of: recordLength)
        var (looks, needed) = (0, 1)
        var found: StreamOpening?
        // One byte after the other, as a client sends them that wants this to cost much.
        for count in 1...stream.count where count >= needed && found == nil {
            looks += 1
            let arrived = Array(stream[..<count])
            found = try opening(arrived)
            guard found == nil else { continue }
            let least = StreamOpening.needed(after: arrived.span)
            #expect(least > count && least <= StreamOpening.longest)
            needed = least
            // Waiting for more than it takes would wait for ever.
            #expect(needed <= stream.count)
        }
        #expect(found == .tls(.http))
        #expect(looks <= 100, "\(looks) looks at \(stream.count) bytes")
    }

    @Test func `needs one byte more where a few decide`() {
        for stream in [[0, 3, 0, 8], [0, 20, 0, 3, 0, 8, 0x21, 0x12], [22], [22, 3, 1, 0, 200, 1, 0]] {
            let bytes = stream.map { UInt8($0) }
            #expect(StreamOpening.needed(after: bytes.span) == bytes.count + 1)
        }
    }

    @Test func `is found in what was recorded`() throws {
        let expected: [StreamOpening] = [
            .tls(.http), .tls(.turn), .tls(nil), .tls(.http), .stun, .framedSTUN, .text,
        ]
        #expect(try PacketCapture("TLS/openings.hex").packets.map(opening) == expected)
    }
}
