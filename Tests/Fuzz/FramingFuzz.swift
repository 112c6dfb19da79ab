// Fuzz entry of framing: however the stream is cut, the same datagrams come out, none longer than the limit.
// Seeds: STUN/*.hex

import Wire

func fuzzFraming(_ bytes: Span<UInt8>) {
    let stream = (try? bytes.bytes(0..<bytes.count)) ?? []
    let whole = frames(of: stream, cut: [stream.count])
    // The bytes themselves say where to cut.
    let cuts = frames(of: stream, cut: stream.map { Int($0 % 7) + 1 })
    guard whole == cuts else { fatalError("a stream cut differently gives other datagrams") }
    guard whole.frames.allSatisfy({ (1...limit).contains($0.count) }) else {
        fatalError("an empty datagram, or one beyond the limit")
    }
}

private let limit = 300

private struct Outcome: Equatable {
    var frames: [[UInt8]] = []
    var isRefused = false
}

private func frames(of stream: [UInt8], cut sizes: [Int]) -> Outcome {
    var outcome = Outcome()
    var reader = FrameReader(limit: limit)
    var rest = stream[...]
    var sizes = sizes[...]
    while !rest.isEmpty {
        let piece = rest.prefix(sizes.popFirst() ?? rest.count)
        rest = rest.dropFirst(piece.count)
        do {
            try reader.read(piece) { datagram in
                outcome.frames.append((try? datagram.span.bytes(0..<datagram.count)) ?? [])
            }
        } catch {
            outcome.isRefused = true
            return outcome
        }
    }
    return outcome
}
