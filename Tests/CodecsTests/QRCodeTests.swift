import Codecs
import Testing

@Suite struct `A QR code` {
    @Test func `has the three patterns by which it is found, and grows with its text`() throws {
        let small = try #require(QRCode("a"))
        let long = try #require(QRCode(String(repeating: "a", count: 300)))
        // ISO/IEC 18004: 21 modules, and four more with each version.
        #expect(small.side == 21)
        #expect(long.side > small.side)
        #expect((long.side - 17) % 4 == 0)
        for code in [small, long] {
            let last = code.side - 1
            for (column, row) in [(0, 0), (last - 6, 0), (0, last - 6)] {
                for step in 0..<7 {
                    #expect(code.isDark(column: column + step, row: row))
                    #expect(code.isDark(column: column, row: row + step))
                }
                #expect(!code.isDark(column: column + 1, row: row + 1))
                #expect(code.isDark(column: column + 3, row: row + 3))
            }
        }
    }

    @Test func `is drawn module by module, with a margin`() throws {
        let code = try #require(QRCode("https://example.org/watch/talk"))
        #expect(code.svg.contains(#"viewBox="0 0 \#(code.side + 8) \#(code.side + 8)""#))
        // The first row begins with the pattern by which it is found, and a light module behind it.
        #expect(code.svg.contains(#"<path d="M4 4h7v1h-7z"#))
        let drawn = code.svg.split(separator: "M").dropFirst(2).compactMap { run in
            run.split(separator: "h")[1].split(separator: "v").first.flatMap { Int($0) }
        }
        let dark = (0..<code.side).flatMap { row in
            (0..<code.side).filter { code.isDark(column: $0, row: row) }
        }
        #expect(drawn.reduce(0, +) == dark.count)
    }

    @Test func `is not made of nothing, nor of more than a camera reads`() {
        #expect(QRCode("") == nil)
        #expect(QRCode(String(repeating: "é", count: 500)) != nil)
        #expect(QRCode(String(repeating: "é", count: 500) + "a") == nil)
        #expect(QRCode("one") != QRCode("two"))
    }
}
