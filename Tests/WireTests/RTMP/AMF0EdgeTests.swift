import TestSupport
import Testing
import Wire

@Suite struct `Values of AMF 0 at their limits` {
    private func values(_ bytes: [UInt8]) throws(WireError) -> [AMF0Value] {
        try AMF0Value.sequence(parsing: bytes.span)
    }

    private func values(_ text: String) throws(WireError) -> [AMF0Value] { try values(hexBytes(text)) }

    @Test func `are true whatever byte says so`() throws {
        let found = try values("01 02 01 ff 01 00")
        #expect(found == [.boolean(true), .boolean(true), .boolean(false)])
    }

    @Test func `are dates in any time zone`() throws {
        // 1,000 ms, 60 minutes to the west.
        let found = try values("0b 408f400000000000 ffc4 05")
        #expect(found == [.date(1_000), .null])
    }

    @Test func `may be members without a name, which do not end their object`() throws {
        let found = try values("03 0000 05 0001 61 06 000009 05")
        #expect(found == [.object([.init("", .null), .init("a", .undefined)]), .null])
        let empty = try values("03 000009")
        #expect(empty == [.object([])])
    }

    @Test func `count by the first of the members with one name`() throws {
        let found = try values("03 0001 61 01 01 0001 61 01 00 000009")
        let first = try #require(found.first)
        #expect(first[name: "a"] == .boolean(true))
        #expect(AMF0Value.null[name: "a"] == nil)
        #expect(AMF0Value.array([.null])[name: ""] == nil)
    }

    @Test func `are counted wherever they are nested`() throws {
        let nulls = [UInt8](repeating: 5, count: AMF0Value.countLimit)
        // The array itself is one of them.
        let full = try values(hexBytes("0a 000001ff") + Array(nulls.dropLast()))
        #expect(full.count == 1)
        #expect(throws: WireError.invalid(.amfNesting)) { try values(hexBytes("0a 00000200") + nulls) }
        #expect(throws: WireError.invalid(.amfNesting)) {
            try values(hexBytes("0a 000001ff") + nulls)
        }
        let member = hexBytes("0001 61 05")
        let members = (1..<AMF0Value.countLimit).flatMap { _ in member }
        let object = try values([3] + members + hexBytes("000009"))
        #expect(object.count == 1)
        #expect(throws: WireError.invalid(.amfNesting)) {
            try values([3] + members + member + hexBytes("000009"))
        }
    }

    @Test(arguments: ["03", "08 00000001", "10 0001 54"])
    func `are objects of no more depth than arrays`(head: String) throws {
        func nested(_ depth: Int) -> [UInt8] {
            let heads = (0..<depth).flatMap { _ in hexBytes(head + "0001 61") }
            let ends = (0..<depth).flatMap { _ in hexBytes("000009") }
            return heads + [5] + ends
        }
        let deepest = try values(nested(AMF0Value.depthLimit))
        #expect(deepest.count == 1)
        #expect(throws: WireError.invalid(.amfNesting)) {
            try values(nested(AMF0Value.depthLimit + 1))
        }
    }

    /// The length alone is enough: nothing is waited for or allocated.
    @Test(
        arguments: [
            "02 2001", "0c 00002001", "0c ffffffff", "0f 00002001", "03 2001", "10 2001", "08 00000000 2001",
        ])
    func `are no texts or names above the limit`(text: String) {
        #expect(throws: WireError.invalid(.amfString)) { try values(text) }
    }

    @Test(
        arguments: [
            "02 2000", "0c 00002000", "03 2000", "02 0002 61", "0b 408f400000000000 ff", "01", "0a 000000",
        ])
    func `are refused where they are cut short`(text: String) {
        #expect(throws: WireError.truncated) { try values(text) }
    }

    @Test(arguments: ["03 0001 ff 05 000009", "10 0001 ff 000009", "0c 00000001 c3", "0f 00000002 c328"])
    func `have names and texts in UTF-8 alone`(text: String) {
        #expect(throws: WireError.invalid(.amfString)) { try values(text) }
    }

    @Test func `are written as long strings where a short one has no room`() {
        var (short, long): ([UInt8], [UInt8]) = ([], [])
        AMF0Value.string(String(repeating: "x", count: 0xFFFF)).append(to: &short)
        AMF0Value.string(String(repeating: "x", count: 0x1_0000)).append(to: &long)
        #expect(Array(short.prefix(3)) == [0x02, 0xFF, 0xFF])
        #expect(short.count == 3 + 0xFFFF)
        #expect(Array(long.prefix(5)) == [0x0C, 0, 1, 0, 0])
        #expect(long.count == 5 + 0x1_0000)
    }

    @Test func `make a command whose object may be missing`() throws {
        let bytes = hexBytes("02 0001 61 00 4000000000000000")
        let command = try RTMPCommand(parsing: bytes.span)
        #expect(command == RTMPCommand("a", transaction: 2))
        for text in ["00 4000000000000000 02 0001 61", "02 0001 61 02 0001 62", "02 0001 61"] {
            let other = hexBytes(text)
            #expect(throws: WireError.invalid(.rtmpCommand)) { try RTMPCommand(parsing: other.span) }
        }
    }
}
