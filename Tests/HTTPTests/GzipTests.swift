import TestSupport
import Testing

@testable import HTTP

@Suite struct GzipTests {
    @Test func `makes text smaller, in gzip's frame`() throws {
        let text = [UInt8](repeating: UInt8(ascii: "a"), count: 10_000)
        let made = try #require(Gzip.compress(text))
        #expect(made.count < 100)
        // RFC 1952 §2.3.1: magic and method, and at the end the length of what went in.
        #expect(Array(made.prefix(3)) == [0x1F, 0x8B, 8])
        #expect(Array(made.suffix(4)) == [0x10, 0x27, 0, 0])
    }

    @Test func `leaves what gets no smaller`() {
        var generator = SeededGenerator(seed: 1)
        let noise = (0..<10_000).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        #expect(Gzip.compress(noise) == nil)
        #expect(Gzip.compress([]) == nil)
        #expect(Gzip.compress([1]) == nil)
    }

    @Test(arguments: [
        ("gzip", true), ("GZip;q=0.5", true), ("br, gzip", true), ("x-gzip", true), ("*", true),
        ("br;q=1,*;q=0.1", true),
        ("", false), ("br", false), ("gzip;q=0", false), ("gzip; Q=0.000", false), ("gzip;q=0, *", false),
        ("*;q=0", false), (",;,", false), ("identity", false),
    ])
    func `hears whether the client takes it`(_ field: String, _ isTaken: Bool) {
        #expect(
            HTTPRequest(method: .get, path: "/", headers: ["Accept-Encoding": field]).acceptsGzip == isTaken)
    }
}
