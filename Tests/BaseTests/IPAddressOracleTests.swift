import Base
import Glibc
import TestSupport
import Testing

/// What the C library makes of a text.
/// - Source: inet_pton(3).
private func known(_ text: String) -> IPAddress? {
    var ipv4 = in_addr()
    if inet_pton(AF_INET, text, &ipv4) == 1 { return IPAddress(ipv4: UInt32(bigEndian: ipv4.s_addr)) }
    var ipv6 = [UInt8](repeating: 0, count: 16)
    guard inet_pton(AF_INET6, text, &ipv6) == 1 else { return nil }
    let (high, low) = (ipv6[..<8], ipv6[8...])
    return IPAddress(
        high: high.reduce(0) { $0 << 8 | UInt64($1) }, low: low.reduce(0) { $0 << 8 | UInt64($1) })
}

@Suite struct `An address as the C library reads it` {
    /// An address in any of its text forms.
    private static func form(using random: inout SeededGenerator) -> String {
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        func bytes() -> String { (0..<4).map { _ in "\(number(0...255))" }.joined(separator: ".") }
        guard number(0...2) > 0 else { return bytes() }
        var groups = (0..<number(6...8)).map { _ -> String in
            let value = number(0...1) == 0 ? 0 : number(0...0xFFFF)
            let digits = String(value, radix: 16, uppercase: number(0...3) == 0)
            let zeros = String(repeating: "0", count: max(4 - digits.count, 0))
            return number(0...4) == 0 ? zeros + digits : digits
        }
        if groups.count == 7 { groups.removeLast() }
        if groups.count == 6 { groups.append(bytes()) }
        guard number(0...1) == 0 else { return groups.joined(separator: ":") }
        // Some groups in a row are left out.
        let first = number(0...(groups.count - 1))
        let last = number(first...(groups.count - 1))
        let (before, after) = (groups[..<first], groups[(last + 1)...])
        return before.joined(separator: ":") + "::" + after.joined(separator: ":")
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `is the same, with a few letters changed as well`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let letters = Array("0123456789abcdefABCDEF:::...gx+- %/")
        var readable = 0
        for _ in 0..<2_000 {
            var text = Array(Self.form(using: &random))
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let place = Int.random(in: 0...text.count, using: &random)
                let letter = letters[Int.random(in: 0..<letters.count, using: &random)]
                switch Int.random(in: 0...2, using: &random) {
                case 0: text.insert(letter, at: place)
                case 1 where place < text.count: text[place] = letter
                case 2 where place < text.count: text.remove(at: place)
                default: break
                }
            }
            let address = IPAddress(String(text))
            #expect(address == known(String(text)), "\(String(text))")
            readable += address == nil ? 0 : 1
        }
        #expect((400...1_900).contains(readable))
    }
}
