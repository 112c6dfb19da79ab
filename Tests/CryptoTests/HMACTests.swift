import Crypto
import Testing

@Suite struct HMACs {
    /// RFC 2202 §3 and RFC 4231 §4, with keys shorter and longer than a block.
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0B, count: 20), Array("Hi There".utf8),
            "b617318655057264e28bc0b6fb378c8ef146be00",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131),
            Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            "90d0dace1c1bdc957339307803160335bde6df2b",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `are those of the RFCs`(_ key: [UInt8], _ message: [UInt8], _ sha1: String, _ sha256: String) {
        let codes = (HMAC.sha1(key: key.span, message.span), HMAC.sha256(key: key.span, message.span))
        #expect(codes.0 == hex(sha1))
        #expect(codes.1 == hex(sha256))
        #expect(OpenSSLAuthenticator().hmacSHA1(key: key.span, message.span) == codes.0)
    }

    @Test func `take empty keys and messages`() {
        let nothing: [UInt8] = []
        let code = HMAC.sha1(key: nothing.span, nothing.span)
        #expect(code == hex("fbdb1d1b18aa6c08324b7d64b71fb76370690e1d"))
    }
}

@Suite struct Randomness {
    @Test func `has the length asked for and does not repeat`() throws {
        #expect(try RandomBytes.make(0).isEmpty)
        let (first, second) = (try RandomBytes.make(32), try RandomBytes.make(32))
        #expect(first.count == 32)
        #expect(first != second)
        #expect(throws: CryptoError.self) { try RandomBytes.make(-1) }
        #expect(throws: CryptoError.self) { try RandomBytes.make(65_537) }
    }
}

@Suite struct ConstantTimeComparison {
    @Test func `tells equal from unequal bytes`() {
        let (left, right): ([UInt8], [UInt8]) = ([1, 2, 3], [1, 2, 4])
        let empty: [UInt8] = []
        let same = ConstantTime.areEqual(left.span, left.span)
        let different = ConstantTime.areEqual(left.span, right.span)
        let shorter = ConstantTime.areEqual(left.span, left.span.extracting(0..<2))
        let nothing = ConstantTime.areEqual(empty.span, empty.span)
        #expect(same && nothing)
        #expect(!different && !shorter)
    }
}
