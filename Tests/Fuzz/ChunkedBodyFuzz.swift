// Fuzz entry of bodies in chunks: however the stream is cut, the same is decoded, and never more than the limit; and
// any body is the same when it is coded and decoded again.
// Seeds: ChunkedBody/*.hex

import HTTP

func fuzzChunkedBody(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    // The bytes themselves say where to cut.
    let sizes = bytes.map { Int($0 % 7) + 1 }
    let whole = decoded(bytes, cut: [])
    guard whole == decoded(bytes, cut: sizes) else {
        fatalError("a stream cut differently gives another body")
    }
    guard whole.body.count <= limit, whole.failure == nil || !whole.isFinished else {
        fatalError("a body beyond the limit, or finished and refused")
    }
    // What comes after the end belongs to nobody.
    if whole.isFinished, decoded(bytes + [0x35, 0x0D, 0x0A], cut: []) != whole {
        fatalError("bytes after the end change the body")
    }
    let again = decoded(coded(bytes, in: sizes), cut: sizes)
    if bytes.count <= limit {
        guard again == Outcome(body: bytes, isFinished: true) else {
            fatalError("a body is another when it is coded and decoded again")
        }
    } else if again.failure != .tooLarge {
        fatalError("a body beyond the limit is taken")
    }
}

private let limit = 1_000

private struct Outcome: Equatable {
    var body: [UInt8] = []
    var isFinished = false
    var failure: ChunkedBody.Failure?
}

/// The rest that the sizes leave comes in one piece.
private func decoded(_ stream: [UInt8], cut sizes: [Int]) -> Outcome {
    var body = ChunkedBody(limit: limit)
    var failure: ChunkedBody.Failure?
    var rest = stream[...]
    var sizes = sizes[...]
    while !rest.isEmpty, failure == nil {
        let piece = rest.prefix(sizes.popFirst() ?? rest.count)
        rest = rest.dropFirst(piece.count)
        do {
            try piece.withUnsafeBytes { try body.append($0) }
        } catch let refusal as ChunkedBody.Failure {
            failure = refusal
        } catch {
            fatalError("\(error) is no failure of a body")
        }
    }
    return Outcome(body: body.body, isFinished: body.isFinished, failure: failure)
}

private func coded(_ body: [UInt8], in sizes: [Int]) -> [UInt8] {
    var coded: [UInt8] = []
    var rest = body[...]
    for size in sizes where !rest.isEmpty {
        // Some chunks are long, and their sizes have several digits.
        let chunk = rest.prefix(size == 7 ? 300 : size)
        rest = rest.dropFirst(chunk.count)
        coded += String(chunk.count, radix: 16, uppercase: size % 2 == 0).utf8
        coded += (size == 5 ? ";name=value\r\n" : "\r\n").utf8
        coded += chunk
        coded += "\r\n".utf8
    }
    return coded + Array("0\r\nName: value\r\n\r\n".utf8)
}
