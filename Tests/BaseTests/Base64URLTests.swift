import TestSupport
import Testing

@testable import Base

@Suite struct Base64URLTests {
    /// RFC 4648 §10, without padding.
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
        ("foobar", "Zm9vYmFy"),
    ])
    func `follows the RFC's vectors`(_ plain: String, _ text: String) {
        #expect(Base64URL.encode(plain.utf8) == text)
        #expect(Base64URL.decode(text.utf8) == Array(plain.utf8))
    }

    @Test func `has the alphabet for URLs`() {
        #expect(Base64URL.encode([0xFB, 0xFF, 0xFE]) == "-__-")
        #expect(Base64URL.encode([0xFF]) == "_w")
        #expect(Base64URL.decode("-__-".utf8) == [0xFB, 0xFF, 0xFE])
        #expect(Base64URL.decode("+//+".utf8) == nil)
    }

    @Test(arguments: ["A", "Zg==", "Zh", "Zm9=", "Zm 9", "Zm9v\n", "é"])
    func `refuses what has another text`(_ text: String) {
        #expect(Base64URL.decode(text.utf8) == nil)
    }

    @Test func `comes back from random bytes`() {
        var random = SeededGenerator(seed: 1)
        for length in 0..<100 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Base64URL.decode(Base64URL.encode(bytes).utf8) == bytes)
        }
    }
}
