import TestSupport
import Testing
import Wire

/// The datagrams in a stream that comes in pieces.
private func datagrams(in pieces: [ArraySlice<UInt8>], limit: Int = 2_048) throws -> [[UInt8]] {
    var reader = FrameReader(limit: limit)
    var found: [[UInt8]] = []
    for piece in pieces {
        try reader.read(piece) { datagram in found.append((0..<datagram.count).map { datagram[$0] }) }
    }
    return found
}

/// One datagram behind its length.
private func framed(_ datagram: [UInt8]) -> [UInt8] {
    guard let (high, low) = FrameReader.header(length: datagram.count) else { return [] }
    return [high, low] + datagram
}

@Suite struct FrameReaderTests {
    private let datagrams1: [[UInt8]] = [[1], [2, 3, 4], Array(repeating: 5, count: 300), [6, 7]]

    @Test func `hands over what stands behind each length`() throws {
        let stream: [UInt8] = [0, 3, 10, 11, 12, 0, 1, 13]
        #expect(try datagrams(in: [stream[...]]) == [[10, 11, 12], [13]])
    }

    @Test func `does not mind where a stream is cut in two`() throws {
        let stream = datagrams1.flatMap(framed)
        for cut in 0...stream.count {
            #expect(try datagrams(in: [stream[..<cut], stream[cut...]]) == datagrams1)
        }
    }

    @Test(arguments: 1...9) func `does not mind small pieces`(size: Int) throws {
        let stream = datagrams1.flatMap(framed)
        let pieces = stride(from: 0, to: stream.count, by: size).map {
            stream[$0..<min($0 + size, stream.count)]
        }
        #expect(try datagrams(in: pieces) == datagrams1)
    }

    @Test func `leaves out empty frames`() throws {
        #expect(try datagrams(in: [[0, 0, 0, 0, 0, 1, 9, 0, 0]]) == [[9]])
    }

    @Test func `keeps what has no end`() throws {
        let stream = framed([1, 2, 3])
        for end in 0..<stream.count { #expect(try datagrams(in: [stream[..<end]]).isEmpty) }
        var reader = FrameReader()
        #expect(reader.isBetweenFrames)
        for end in stream.indices {
            try reader.read(stream[end...end]) { _ in }
            #expect(reader.isBetweenFrames == (end == stream.count - 1))
        }
    }

    @Test func `refuses a frame beyond its limit before any of it has come`() throws {
        #expect(try datagrams(in: [framed(Array(repeating: 1, count: 100))[...]], limit: 100).count == 1)
        #expect(throws: WireError.invalid(.frameLength)) {
            _ = try datagrams(in: [[0, 101]], limit: 100)
        }
    }

    @Test func `hands over what came before a frame beyond its limit`() {
        var reader = FrameReader(limit: 2)
        var found = 0
        #expect(throws: WireError.self) { try reader.read([0, 1, 9, 0, 3]) { _ in found += 1 } }
        #expect(found == 1)
    }

    @Test func `takes random streams in random pieces`() throws {
        var random = SeededGenerator(seed: 4571)
        for _ in 0..<300 {
            let sent = (0..<Int.random(in: 0...9, using: &random)).map { _ in
                (0..<Int.random(in: 1...90, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            }
            var rest = sent.flatMap(framed)[...]
            var pieces: [ArraySlice<UInt8>] = []
            while !rest.isEmpty {
                pieces.append(rest.prefix(Int.random(in: 1...50, using: &random)))
                rest = rest.dropFirst(pieces.last?.count ?? 1)
            }
            #expect(try datagrams(in: pieces) == sent)
        }
    }

    @Test func `survives random bytes`() {
        var random = SeededGenerator(seed: 6544)
        for _ in 0..<2_000 {
            let noise = (0..<Int.random(in: 0...64, using: &random)).map { _ in
                UInt8.random(in: 0...(Bool.random(using: &random) ? 3 : 255), using: &random)
            }
            var total = 0
            _ = try? { () throws(WireError) in
                var reader = FrameReader(limit: 40)
                try reader.read(noise[...]) { datagram in total += datagram.count }
            }()
            #expect(total <= noise.count)
        }
    }
}
