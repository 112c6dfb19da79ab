import Base
import TestSupport
import Testing
import Wire

private func parse(_ bytes: [UInt8]) throws(WireError) -> STUNMessage {
    try STUNMessage(parsing: bytes.span)
}

/// A Binding request with these attributes and a right length.
private func message(_ attributes: String) -> [UInt8] {
    let body = hexBytes(attributes)
    var bytes = hexBytes("0001 0000 2112a442 000000000000000000000001") + body
    bytes[2] = UInt8(body.count >> 8)
    bytes[3] = UInt8(body.count & 0xFF)
    return bytes
}

@Suite struct STUNMessages {
    @Test func `of a client are parsed into values and ranges`() throws {
        let received = try ReceivedSTUN(STUNVectors.request)
        let request = received.message
        #expect(request.kind == .bindingRequest)
        #expect(request.transactionID == .init(high: 0xB7E7_A701, low: 0xBC34_D686_FA87_DFAE))
        #expect(
            request.attributes.map(\.type) == [
                .software, .priority, .iceControlled, .username, .messageIntegrity, .fingerprint,
            ])
        #expect(request.priority == 0x6E00_01FF)
        #expect(request.iceControlled == 0x932F_F9B1_5126_3B36)
        #expect(request.iceControlling == nil)
        #expect(!request.useCandidate)
        #expect(request[.software] == 24..<40)
        #expect(request[.nonce] == nil)
        #expect(received.username == "evtj:h6vY")
        #expect(request.unknownRequired == [])
    }

    @Test func `tell who sent them and that they are whole`() throws {
        for bytes in [STUNVectors.request, STUNVectors.responseIPv4, STUNVectors.responseIPv6] {
            let vector = try ReceivedSTUN(bytes)
            #expect(vector.fingerprint == .right)
            #expect(vector.isAuthentic(key: STUNVectors.password))
            #expect(!vector.isAuthentic(key: STUNVectors.longTermKey))
        }
        let longTerm = try ReceivedSTUN(STUNVectors.longTermRequest)
        #expect(longTerm.fingerprint == .absent)
        #expect(longTerm.isAuthentic(key: STUNVectors.longTermKey))
        #expect(longTerm.username == "マトリックス")
    }

    @Test func `tell the address their sender was seen at`() throws {
        let ipv4 = try ReceivedSTUN(STUNVectors.responseIPv4)
        #expect(ipv4.message.kind == .bindingSuccess)
        #expect(try ipv4.xorMappedAddress() == TransportAddress("192.0.2.1:32853"))
        let ipv6 = try ReceivedSTUN(STUNVectors.responseIPv6)
        #expect(
            try ipv6.xorMappedAddress()
                == TransportAddress("[2001:db8:1234:5678:11:2233:4455:6677]:32853"))
    }

    @Test(arguments: STUNVectors.all) func `with any bit changed are not authentic`(vector: [UInt8]) throws {
        let key = vector == STUNVectors.longTermRequest ? STUNVectors.longTermKey : STUNVectors.password
        let integrity = try #require(try parse(vector)[.messageIntegrity])
        for bit in 0..<(integrity.upperBound * 8) {
            var bytes = vector
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            guard let changed = try? ReceivedSTUN(bytes) else { continue }
            #expect(!changed.isAuthentic(key: key))
            #expect(changed.fingerprint != .right)
        }
    }

    @Test(arguments: STUNVectors.all) func `cut short anywhere are refused`(vector: [UInt8]) {
        for length in vector.indices {
            #expect(throws: WireError.truncated) { try parse(Array(vector[..<length])) }
        }
    }

    @Test func `with anything behind them are refused`() {
        #expect(throws: WireError.invalid(.stunLength)) { try parse(STUNVectors.request + [0]) }
        #expect(throws: WireError.invalid(.stunLength)) { try parse(STUNVectors.request + [0, 0, 0, 0]) }
    }

    @Test func `of another protocol are refused`() {
        var bytes = STUNVectors.request
        bytes[0] = 0x40
        #expect(throws: WireError.invalid(.stunType)) { try parse(bytes) }
        bytes = STUNVectors.request
        bytes[4] = 0
        #expect(throws: WireError.invalid(.stunCookie)) { try parse(bytes) }
        bytes = STUNVectors.request
        bytes[3] += 1
        #expect(throws: WireError.invalid(.stunLength)) { try parse(bytes) }
    }

    @Test(arguments: ["00240003 6e0001ff", "00250004 00000000", "80290004 00000000", "00080004 00000000"])
    func `with a value of the wrong length are refused`(attribute: String) {
        #expect(throws: WireError.invalid(.stunAttributeLength)) { try parse(message(attribute)) }
    }

    @Test func `with an overlong user name are refused`() throws {
        let longest = message("000601fc" + String(repeating: "61", count: 508))
        #expect(try ReceivedSTUN(longest).username?.count == 508)
        let longer = message("000601fd" + String(repeating: "61", count: 509) + "000000")
        #expect(throws: WireError.invalid(.stunAttributeLength)) { try parse(longer) }
    }

    @Test func `with more attributes than the limit are refused`() throws {
        let most = String(repeating: "80220000", count: STUNMessage.attributeLimit)
        #expect(try parse(message(most)).attributes.count == 1)
        #expect(throws: WireError.invalid(.stunAttributeCount)) { try parse(message(most + "80220000")) }
    }

    @Test func `whose attribute ends beyond them are refused`() {
        #expect(throws: WireError.truncated) { try parse(message("80220005 00000000")) }
        #expect(throws: WireError.truncated) { try parse(message("8022ffff 00000000")) }
    }

    @Test func `with anything behind FINGERPRINT are refused`() {
        #expect(throws: WireError.invalid(.stunFingerprint)) {
            try parse(message("80280004 00000000 80220000"))
        }
    }

    @Test func `count only the first of repeated attributes`() throws {
        let repeated = try parse(message("00240004 00000001 00240004 00000002"))
        #expect(repeated.priority == 1)
        #expect(repeated.attributes.count == 1)
    }

    @Test func `do not count what MESSAGE-INTEGRITY does not protect`() throws {
        let integrity = "00080014" + String(repeating: "00", count: 20)
        let parsed = try parse(message(integrity + "00250000 7fff0000 80280004 00000000"))
        #expect(parsed.attributes.map(\.type) == [.messageIntegrity, .fingerprint])
        #expect(!parsed.useCandidate)
        #expect(parsed.unknownRequired == [])
    }

    @Test func `list what must be understood and is not`() throws {
        let parsed = try parse(message("00030004 00000000 c0570004 00000000 7fff0000"))
        #expect(parsed.unknownRequired.map(\.rawValue) == [0x0003, 0x7FFF])
    }

    @Test(
        arguments: [
            ("00200004 00010000", WireError.invalid(.stunAddress)),
            ("00200008 0003000000000000", .invalid(.stunAddress)),
            ("00200014 0001000000000000 000000000000000000000000", .invalid(.stunAddress)),
            ("00200008 0002000000000000", .invalid(.stunAddress)),
        ])
    func `with an address of no known form are refused`(attribute: String, error: WireError) throws {
        let parsed = try ReceivedSTUN(message(attribute))
        #expect(throws: error) { try parsed.xorMappedAddress() }
    }

    @Test(arguments: ["00090000", "00090004 00000200", "00090004 00000763", "00090004 00000464"])
    func `with an error code outside 300 to 699 are refused`(attribute: String) throws {
        let parsed = try ReceivedSTUN(message(attribute))
        #expect(throws: WireError.invalid(.stunErrorCode)) { try parsed.errorCode() }
    }

    @Test func `with text that is not UTF-8 have no user name and no reason`() throws {
        let parsed = try ReceivedSTUN(message("00060004 fffefdfc 00090008 00000400 fffefdfc"))
        #expect(parsed.username == nil)
        #expect(throws: WireError.invalid(.stunText)) { try parsed.errorCode() }
    }

    @Test func `survive random bytes and random changes`() {
        var random = SeededGenerator(seed: 5_389)
        var accepted = 0
        for round in 0..<20_000 {
            var bytes: [UInt8]
            if round % 2 == 0 {
                bytes = (0..<Int.random(in: 0...120, using: &random)).map { _ in random.next() }
            } else {
                bytes = STUNVectors.all[round / 2 % STUNVectors.all.count]
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: 20..<bytes.count, using: &random)] = random.next()
                }
            }
            guard let parsed = try? ReceivedSTUN(bytes) else { continue }
            accepted += 1
            _ = parsed.fingerprint
            _ = parsed.isAuthentic(key: [1])
            _ = parsed.username
            _ = try? parsed.xorMappedAddress()
            _ = try? parsed.errorCode()
            _ = try? parsed.unknownAttributes()
            #expect(parsed.message.attributes.allSatisfy { $0.range.upperBound <= bytes.count })
        }
        #expect(accepted > 1_000)
    }
}

@Suite struct UfragOfARequest {
    private func ufrag(of bytes: [UInt8]) -> String? { STUNMessage.localUfrag(ofRequest: bytes.span) }

    private func ufrag(_ username: String, kind: STUNKind = .bindingRequest) -> String? {
        var writer = STUNWriter(kind, transactionID: .init(high: 0, low: 0))
        writer.append(.software, Array("odd".utf8))
        writer.appendUsername(username)
        return ufrag(of: writer.sealed())
    }

    @Test func `is what stands before the colon`() {
        #expect(ufrag(of: STUNVectors.request) == "evtj")
        #expect(ufrag("a+/9:z") == "a+/9")
        #expect(ufrag(String(repeating: "x", count: 256) + ":z")?.count == 256)
    }

    @Test(arguments: ["", "abcd", "abc:efgh", "abcd:", "ab d:efgh", "abcdé:efgh", ":abcd"])
    func `is not found in a name that is not ICE's`(username: String) {
        #expect(ufrag(username) == nil)
    }

    @Test func `is at most 256 characters long`() {
        #expect(ufrag(String(repeating: "x", count: 257) + ":z") == nil)
    }

    @Test func `is not found in anything but a Binding request`() {
        #expect(ufrag("abcd:efgh", kind: .bindingIndication) == nil)
        #expect(ufrag("abcd:efgh", kind: .bindingSuccess) == nil)
        #expect(ufrag(of: STUNVectors.responseIPv4) == nil)
        var noCookie = STUNVectors.request
        noCookie[5] = 0
        #expect(ufrag(of: noCookie) == nil)
    }

    @Test func `is not found in a request cut before it`() {
        for length in 0..<73 {
            #expect(ufrag(of: Array(STUNVectors.request[..<length])) == nil)
        }
    }
}
