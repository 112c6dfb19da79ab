import TestSupport
import Testing
import Wire

@Suite struct AMF0ValueTests {
    /// What an encoder sends first: `connect`, 1, and an object.
    private static let connect = hexBytes(
        """
        02 0007 636f6e6e656374 00 3ff0000000000000
        03 0003 617070 02 0004 6c697665 0005 6674696d65 01 01 000009
        """)

    @Test func `reads what an encoder connects with`() throws {
        let values = try AMF0Value.sequence(parsing: Self.connect.span)
        #expect(values.count == 3)
        #expect(values[0] == .string("connect") && values[1] == .number(1))
        #expect(values[2][name: "app"]?.text == "live")
        #expect(values[2][name: "ftime"] == .boolean(true))
        #expect(values[2][name: "nothing"] == nil)
    }

    @Test func `refuses every prefix that ends within a value`() {
        // Behind the name and behind the number the sequence is whole.
        for length in 1..<Self.connect.count where length != 10 && length != 19 {
            #expect(throws: WireError.truncated) {
                try AMF0Value.sequence(parsing: Array(Self.connect.prefix(length)).span)
            }
        }
    }

    @Test func `is written as it is read`() throws {
        let values: [AMF0Value] = [
            .number(-1.5), .boolean(false), .string("é"), .null, .undefined, .date(1_000),
            .array([.number(1), .object([.init("a", .array([])), .init("b", .string(""))])]),
            .string(String(repeating: "x", count: AMF0Value.stringLimit)),
        ]
        var bytes: [UInt8] = []
        for value in values { value.append(to: &bytes) }
        #expect(try AMF0Value.sequence(parsing: bytes.span) == values)
    }

    @Test func `reads ECMA arrays, typed objects, long strings and XML as what they are like`() throws {
        let bytes = hexBytes(
            """
            08 00000000 0001 61 05 000009
            10 0001 54 0001 61 06 000009
            0c 00000001 78 0f 00000001 79
            """)
        #expect(
            try AMF0Value.sequence(parsing: bytes.span) == [
                .object([.init("a", .null)]), .object([.init("a", .undefined)]), .string("x"), .string("y"),
            ])
    }

    @Test func `refuses references, what AMF 3 adds, and what is no UTF-8`() {
        for marker: UInt8 in [0x04, 0x07, 0x0D, 0x0E, 0x11, 0xFF] {
            #expect(throws: WireError.invalid(.amfMarker)) {
                try AMF0Value.sequence(parsing: [marker, 0, 0, 0, 0].span)
            }
        }
        #expect(throws: WireError.invalid(.amfString)) {
            try AMF0Value.sequence(parsing: [2, 0, 1, 0xFF].span)
        }
    }

    @Test func `is bounded in depth, in number, and in the length of strings`() {
        func nested(_ depth: Int) -> [UInt8] {
            [UInt8](repeating: 0, count: depth).flatMap { _ in hexBytes("0a 00000001") } + [5]
        }
        #expect(throws: Never.self) { try AMF0Value.sequence(parsing: nested(AMF0Value.depthLimit).span) }
        #expect(throws: WireError.invalid(.amfNesting)) {
            try AMF0Value.sequence(parsing: nested(AMF0Value.depthLimit + 1).span)
        }
        let many = [UInt8](repeating: 5, count: AMF0Value.countLimit)
        #expect(throws: Never.self) { try AMF0Value.sequence(parsing: many.span) }
        #expect(throws: WireError.invalid(.amfNesting)) {
            try AMF0Value.sequence(parsing: (many + [5]).span)
        }
        #expect(throws: WireError.invalid(.amfNesting)) {
            try AMF0Value.sequence(parsing: hexBytes("0a ffffffff").span)
        }
        #expect(throws: WireError.invalid(.amfString)) {
            try AMF0Value.sequence(parsing: hexBytes("0c 00002001").span)
        }
    }
}
