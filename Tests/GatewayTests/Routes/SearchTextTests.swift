import TestSupport
import Testing

@testable import Gateway

@Suite struct `A text that is searched` {
    @Test(arguments: [
        ("tea", "Five o'clock TEA"), ("TEA", "teapot"), ("é", "CAFÉ"), ("CAFÉ", "café"), ("x-1", "X-1"),
        ("ß", "Straße"), ("@[`{", "@[`{"),
    ])
    func `is found whatever the case`(wanted: String, text: String) throws {
        let search = try #require(SearchText(wanted))
        #expect(search.isFound(in: text))
    }

    /// Only letters have a case: these differ by the same bit.
    @Test(arguments: [("tea", "te"), ("é", "cafe"), ("e", "é"), ("@", "`"), ("[", "{"), ("tea", "")])
    func `is not found in what is only like it`(wanted: String, text: String) throws {
        let search = try #require(SearchText(wanted))
        #expect(!search.isFound(in: text))
    }

    @Test func `must not be empty`() {
        let search = SearchText("")
        #expect(search == nil)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `is found where it is in lower case`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        func text(_ length: ClosedRange<Int>) -> String {
            let characters: [Character] = ["a", "A", "b", "B", "@", "é", "É", "ß", "🎥"]
            let isASCII = Bool.random(using: &random)
            return String(
                (0..<Int.random(in: length, using: &random)).map { _ in
                    characters[Int.random(in: isASCII ? 0...4 : 0...8, using: &random)]
                })
        }
        for _ in 0..<200 {
            let (wanted, other) = (text(1...2), text(0...8))
            let search = try #require(SearchText(wanted))
            let isThere = other.lowercased().contains(wanted.lowercased())
            #expect(search.isFound(in: other) == isThere, "\(wanted) in \(other)")
        }
    }
}
