import Base
import Foundation
import TestSupport
import Testing

@Suite struct `A value of JSON` {
    private static func made(depth: Int, using random: inout SeededGenerator) -> JSON {
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        func text() -> String {
            let letters: [Character] = [
                "a", "\"", "\\", "/", "\n", "\r\n", "\0", "\u{1F}", "é", "🎥", "\u{2028}",
            ]
            let chosen = (0..<number(0...6)).map { _ in letters[number(0...(letters.count - 1))] }
            return String(chosen)
        }
        switch number(0...(depth < 4 ? 7 : 5)) {
        case 0: return .null
        case 1: return .bool(number(0...1) == 1)
        case 2: return .number(Double(number(-1_000_000_000_000_000...1_000_000_000_000_000)))
        case 3:
            // Any exponent but those of zero and of what is not finite.
            let exponent = UInt64(number(1...2_046)) << 52
            return .number(Double(bitPattern: random.next() & 0x800F_FFFF_FFFF_FFFF | exponent))
        case 4, 5: return .string(text())
        case 6: return .array((0..<number(0...4)).map { _ in made(depth: depth + 1, using: &random) })
        default:
            var members: [String: JSON] = [:]
            for _ in 0..<number(0...4) { members[text()] = made(depth: depth + 1, using: &random) }
            return .object(members)
        }
    }

    @Test(arguments: 0..<100 as Range<UInt64>)
    func `is read by others as it was written`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        // A member, because not every reader takes a lone number.
        let value = JSON.object(["value": Self.made(depth: 0, using: &random)])
        #expect(try JSONDecoder().decode(JSON.self, from: Data(value.bytes)) == value)
        #expect(try JSONDecoder().decode(JSON.self, from: JSONEncoder().encode(value)) == value)
        #expect(!value.bytes.contains { $0 < 0x20 })
    }

    @Test(
        arguments: [
            (0, "0"), (-0.0, "0"), (1, "1"), (-7, "-7"), (0.5, "0.5"),
            (999_999_999_999_999, "999999999999999"),
            (.infinity, "null"), (-.infinity, "null"), (.nan, "null"), (.leastNonzeroMagnitude, "5e-324"),
        ] as [(Double, String)])
    func `is a number that every reader knows`(number: Double, text: String) {
        #expect(JSON.number(number).text == text)
    }

    @Test func `has equal bytes where it is equal`() {
        let one: JSON = .object(["b": .null, "a": .array([.bool(true), .integer(7)]), "é": .text(nil)])
        #expect(one.text == #"{"a":[true,7],"b":null,"é":null}"#)
        #expect(JSON.time(WallTime(milliseconds: 0)).text == #""1970-01-01T00:00:00.000Z""#)
        #expect(JSON.string("a\"\\\n\u{01}").text == #""a\"\\\n\u0001""#)
    }
}
