import Base
import TestSupport
import Testing
import Wire

private let authenticator = SHA1Authenticator()

@Suite struct STUNWriters {
    private let id = STUNTransactionID(high: 0xB7E7_A701, low: 0xBC34_D686_FA87_DFAE)

    private func parsed(_ bytes: [UInt8]) throws -> ReceivedSTUN {
        try ReceivedSTUN(bytes)
    }

    /// The RFC pads with blanks, we with zeros, so the vector is compared field by field.
    @Test func `write the request of RFC 5769`() throws {
        var writer = STUNWriter(.bindingRequest, transactionID: id)
        writer.append(.software, Array("STUN test client".utf8))
        writer.append(.priority, 0x6E00_01FF as UInt32)
        writer.append(.iceControlled, 0x932F_F9B1_5126_3B36 as UInt64)
        writer.appendUsername("evtj:h6vY")
        let bytes = writer.sealed(key: STUNVectors.password, by: authenticator)
        let received = try parsed(bytes)
        let message = received.message
        let vector = try parsed(STUNVectors.request).message
        #expect(message.attributes == vector.attributes)
        #expect(message.priority == vector.priority)
        #expect(message.iceControlled == vector.iceControlled)
        #expect(message.transactionID == vector.transactionID)
        #expect(bytes.count == STUNVectors.request.count)
        #expect(Array(bytes[..<73]) == Array(STUNVectors.request[..<73]))
        #expect(received.isAuthentic(key: STUNVectors.password))
        #expect(received.fingerprint == .right)
    }

    @Test(arguments: [
        "192.0.2.1:32853", "0.0.0.0:0", "[2001:db8:1234:5678:11:2233:4455:6677]:65535", "[::]:1",
    ])
    func `give back the address they were given`(text: String) throws {
        let address = try #require(TransportAddress(text))
        var writer = STUNWriter(.bindingSuccess, transactionID: id)
        writer.appendXORMappedAddress(address)
        let bytes = writer.sealed(key: [1, 2, 3], by: authenticator)
        let message = try parsed(bytes)
        #expect(try message.xorMappedAddress() == address)
        #expect(message.isAuthentic(key: [1, 2, 3]))
    }

    @Test func `hide addresses as RFC 5769 does`() {
        var writer = STUNWriter(.bindingSuccess, transactionID: id)
        writer.appendXORMappedAddress(TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 32_853))
        #expect(Array(writer.sealed()[20..<32]) == Array(STUNVectors.responseIPv4[36..<48]))
    }

    @Test(arguments: [STUNErrorCode.badRequest, .unauthenticated, .unknownAttribute, .roleConflict])
    func `give back the error they were given`(code: STUNErrorCode) throws {
        var writer = STUNWriter(.bindingError, transactionID: id)
        writer.appendErrorCode(code)
        writer.appendUnknownAttributes([.init(rawValue: 3), .init(rawValue: 0x7FFF), .init(rawValue: 9)])
        let bytes = writer.sealed()
        let message = try parsed(bytes)
        let read = try message.errorCode()
        #expect(read?.number == code.number)
        #expect(read?.reason == code.reason)
        #expect(try message.unknownAttributes().map(\.rawValue) == [3, 0x7FFF, 9])
        #expect(message.message[.messageIntegrity] == nil)
        #expect(message.fingerprint == .right)
    }

    @Test func `write what parses again, whatever the values`() throws {
        var random = SeededGenerator(seed: 8_489)
        for _ in 0..<500 {
            var writer = STUNWriter(.bindingRequest, transactionID: STUNTransactionID(using: &random))
            var expected: [STUNAttribute: [UInt8]] = [:]
            for _ in 0..<Int.random(in: 0...8, using: &random) {
                let type = STUNAttribute(rawValue: UInt16.random(in: 0x4000...0x7FFF, using: &random))
                let value: [UInt8] = (0..<Int.random(in: 0...60, using: &random)).map { _ in random.next() }
                guard expected[type] == nil else { continue }
                expected[type] = value
                writer.append(type, value)
            }
            let key: [UInt8] = [random.next()]
            let bytes = writer.sealed(key: key, by: authenticator)
            let message = try parsed(bytes)
            for (type, value) in expected {
                let range = try #require(message.message[type])
                #expect(Array(bytes[range]) == value)
            }
            #expect(message.isAuthentic(key: key))
            #expect(message.fingerprint == .right)
        }
    }
}

@Suite struct CRC32Checksums {
    @Test func `are those of the standard`() {
        let digits = CRC32.checksum(Array("123456789".utf8).span)
        #expect(digits == 0xCBF4_3926)
        let nothing = CRC32.checksum([UInt8]().span)
        #expect(nothing == 0)
    }
}

@Suite struct SHA1AuthenticatorTests {
    /// RFC 3174 §7.3 and RFC 2202 §3.
    @Test func `agrees with the RFCs`() {
        #expect(
            SHA1Authenticator.sha1(Array("abc".utf8)) == hexBytes("a9993e364706816aba3e25717850c26c9cd0d89d"))
        #expect(
            SHA1Authenticator.sha1(Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8))
                == hexBytes("84983e441c3bd26ebaae4aa1f95129e5e54670f1"))
        let key = [UInt8](repeating: 0xAA, count: 80)
        let message = Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)
        let code = authenticator.hmacSHA1(key: key.span, message.span)
        #expect(code == hexBytes("aa4ae5e15272d00e95705637ce8a3b55ed402112"))
    }
}
