import Base
import Testing

@testable import Node

@Suite struct `A stranger's JSON` {
    private static func parsed(_ text: String) -> JSON? { JSON(parsing: Array(text.utf8)) }

    @Test func `is read with the type of each value`() {
        let text = #"{"t":true,"f":false,"one":1,"zero":0,"n":null,"s":"\u00e9\ud83d\ude00","a":[1.5,[],{}]}"#
        let expected: [String: JSON] = [
            "t": .bool(true), "f": .bool(false), "one": .number(1), "zero": .number(0), "n": .null,
            "s": .string("é😀"), "a": .array([.number(1.5), .array([]), .object([:])]),
        ]
        #expect(Self.parsed(text) == .object(expected))
    }

    @Test(arguments: ["true", "-0.5", #""text""#, "null", "[]", "{}"])
    func `may be any value`(text: String) {
        #expect(Self.parsed(text)?.text == text)
    }

    @Test func `keeps what a Double holds of a number`() {
        #expect(Self.parsed("9007199254740993") == .number(9_007_199_254_740_992))
        #expect(Self.parsed("18446744073709551615") == .number(18_446_744_073_709_551_616))
        #expect(Self.parsed("12345678901234567890123") == .number(12_345_678_901_234_567_741_440))
    }

    @Test(arguments: [
        "", " ", "{", "[1", "[1,,]", #"{"a":1"#, "{} {}", "{a:1}", "01", "1e", "-", "NaN", "[1e999]",
        #""\ud800""#, "\"\t\"", #""a"#, "{\"a\":1\u{0}}", "tru",
    ])
    func `is refused if it is malformed`(text: String) {
        #expect(Self.parsed(text) == nil)
    }

    @Test func `is refused if it is no UTF-8`() {
        #expect(JSON(parsing: [0x22, 0xFF, 0x22]) == nil)
        #expect(JSON(parsing: [0x22, 0xC3, 0x22]) == nil)
    }

    /// A whole request's body in values as small and as deep as can be: with an error for each type that a value does
    /// not have, this took minutes.
    @Test(.timeLimit(.minutes(1)), arguments: [1, 100, 500])
    func `takes no longer because it is deep`(depth: Int) throws {
        let count = 60_000
        let text =
            String(repeating: "[", count: depth) + String(repeating: "[],", count: count) + "1"
            + String(repeating: "]", count: depth)
        var value = try #require(Self.parsed(text))
        for _ in 1..<depth {
            guard case .array(let values) = value, let first = values.first, values.count == 1 else {
                Issue.record("a level holds more than the next one")
                return
            }
            value = first
        }
        guard case .array(let values) = value else {
            Issue.record("the innermost value is no array")
            return
        }
        #expect(values.count == count + 1)
        #expect(values.last == .number(1))
    }

    @Test func `is refused if it is deeper than can be read`() {
        #expect(Self.parsed(String(repeating: "[", count: 90_000)) == nil)
        let text = String(repeating: "[", count: 90_000) + String(repeating: "]", count: 90_000)
        #expect(Self.parsed(text) == nil)
    }
}
