import Crypto
import TestSupport
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

    /// Of keys below, at and above a block, and messages over several.
    @Test func `are those of another implementation`() {
        var random = SeededGenerator(seed: 2_104)
        for length in 0..<200 {
            let key = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            let count = Int.random(in: 0...300, using: &random)
            let message = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            let code = HMAC.sha1(key: key.span, message.span)
            let other = SHA1Authenticator().hmacSHA1(key: key.span, message.span)
            #expect(code == other, "a key of \(length) bytes")
        }
    }

    @Test func `take empty keys and messages`() {
        let nothing: [UInt8] = []
        let code = HMAC.sha1(key: nothing.span, nothing.span)
        #expect(code == hex("fbdb1d1b18aa6c08324b7d64b71fb76370690e1d"))
    }
}

@Suite struct `A SHA-256 digest` {
    /// FIPS 180-2 appendix B, and nothing at all.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `is that of the standard, in however many parts it comes`(_ text: String, _ digest: String) throws {
        let bytes = Array(text.utf8)
        for part in 1...max(bytes.count, 1) {
            var made = try SHA256Digest()
            for start in stride(from: 0, to: bytes.count, by: part) {
                made.update(Array(bytes[start..<min(start + part, bytes.count)]).span)
            }
            #expect(try made.finish() == hex(digest))
        }
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

@Suite struct MessageDigests {
    /// RFC 1321 §A.5; the last is the key of RFC 5769 §2.4.
    @Test(arguments: [
        ("", "d41d8cd98f00b204e9800998ecf8427e"), ("abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        (
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            "57edf4a22be3c955ac49da2e2107b67a"
        ),
        ("マトリックス:example.org:TheMatrIX", "e8ca7ad59d5eb0518e312911d2dab2a9"),
    ])
    func `digest as others do`(text: String, digest: String) {
        let message = Array(text.utf8)
        let made = MessageDigest.md5(message.span)
        #expect(made == hexBytes(digest))
    }
}
