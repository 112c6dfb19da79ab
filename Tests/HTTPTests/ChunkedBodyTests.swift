import TestSupport
import Testing

@testable import HTTP

/// - Source: RFC 9112 §7.1.
@Suite struct `A body in chunks` {
    /// What is decoded of pieces that come one after another.
    private func decoded(_ pieces: [ArraySlice<UInt8>], limit: Int = 10_000) throws -> ChunkedBody {
        var body = ChunkedBody(limit: limit)
        for piece in pieces { try piece.withUnsafeBytes { try body.append($0) } }
        return body
    }

    private func decoded(_ text: String, limit: Int = 10_000) throws -> ChunkedBody {
        try decoded([Array(text.utf8)[...]], limit: limit)
    }

    /// A body, and how a client that uses all of the grammar sends it.
    private func made(using random: inout SeededGenerator) -> (body: [UInt8], coded: [UInt8]) {
        func chosen(_ texts: [String]) -> String {
            texts[Int.random(in: 0..<texts.count, using: &random)]
        }
        var (body, coded): ([UInt8], [UInt8]) = ([], [])
        for _ in 0..<Int.random(in: 0...6, using: &random) {
            let count = Int.random(in: 1...300, using: &random)
            let data = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            let isUpper = Bool.random(using: &random)
            let size = chosen(["", "0", "000"]) + String(count, radix: 16, uppercase: isUpper)
            coded += (size + chosen(["", ";a", ";a=\"b c\"", " ;a=b"]) + chosen(["\r\n", "\n"])).utf8
            coded += data + Array(chosen(["\r\n", "\n"]).utf8)
            body += data
        }
        let trailer = chosen(["", "A: b\r\n", "A: b\nC:\r\n"])
        coded += (chosen(["0", "000", "0;last"]) + "\r\n" + trailer + "\r\n").utf8
        return (body, coded)
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `is put together however it is cut, and ends with its last byte`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let (body, coded) = made(using: &random)
        var pieces: [ArraySlice<UInt8>] = []
        var rest = coded[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...80, using: &random))
            pieces.append(piece)
            rest = rest.dropFirst(piece.count)
        }
        let whole = try decoded(pieces)
        #expect(whole.body == body)
        #expect(whole.isFinished)
        for length in 0..<coded.count {
            let part = try decoded([coded.prefix(length)])
            #expect(!part.isFinished)
            #expect(body.starts(with: part.body))
        }
        // What comes after it is not its own.
        let more = try decoded([coded[...], Array("5\r\nhello\r\n".utf8)[...]])
        #expect(more.body == body)
    }

    @Test(arguments: [
        "\r\n", "\n", "x\r\n", ";a\r\n", "-5\r\n", "+5\r\n", " 5\r\n", "0x5\r\n", "5h\r\n", "5\0\r\n",
        "5,\r\n",
        "5\r\nhello0\r\n", "5\r\nhello world\r\n", "5\r\nhello\r0\r\n", "5\r\nhello\r\n\r\n",
    ])
    func `is refused where it is malformed`(text: String) {
        #expect(throws: ChunkedBody.Failure.malformed) { try decoded(text + "0\r\n\r\n") }
    }

    @Test func `is refused as soon as a size is over the limit, whatever number it is`() throws {
        #expect(try decoded("a\r\n0123456789\r\n0\r\n\r\n", limit: 10).body.count == 10)
        for text in [
            "b\r\n", "5\r\nhello\r\n6\r\n", "a\r\n0123456789\r\n1\r\n", "ffffffffffffffff\r\n",
            "7fffffffffffffff\r\n", "10000000000000000\r\n", "8000000000000000\r\n",
            String(repeating: "f", count: 200),
        ] {
            #expect(throws: ChunkedBody.Failure.tooLarge) { try decoded(text, limit: 10) }
        }
    }

    /// Neither counts for the body, so each has a bound of its own.
    @Test func `has no endless lines of sizes, and no endless trailer`() throws {
        let zeros = String(repeating: "0", count: 1_000)
        #expect(try decoded(zeros + "1\r\nx\r\n0\r\n\r\n").body == [0x78])
        #expect(throws: ChunkedBody.Failure.malformed) { try decoded(zeros + zeros + "1\r\n") }
        let detail = ";" + String(repeating: "x", count: 900)
        #expect(try decoded("1\(detail)\r\nx\r\n1\(detail)\r\ny\r\n0\r\n\r\n").body == [0x78, 0x79])
        #expect(throws: ChunkedBody.Failure.malformed) { try decoded("1" + detail + detail) }
        let field = "A: " + String(repeating: "x", count: 90) + "\r\n"
        let fields = String(repeating: field, count: 10)
        #expect(try decoded("0\r\n\(fields)\r\n").isFinished)
        #expect(throws: ChunkedBody.Failure.malformed) { try decoded("0\r\n\(fields)\(fields)\r\n") }
    }
}
