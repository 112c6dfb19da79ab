// Fuzz entry of targets by RTMP: whatever one says, and however it is cut, the same comes of it, and it learns no more
// than the protocol has it know.
// Seeds: Restream/*.hex

import Base
import Restream
import Wire

func fuzzRestream(_ input: Span<UInt8>) {
    guard let bytes = try? input.bytes(0..<input.count) else { return }
    let whole = outcome(of: bytes, cut: [])
    let cut = outcome(of: bytes, cut: bytes.map { Int($0 % 11) + 1 })
    guard whole == cut else { fatalError("an answer cut differently gives something else") }
    if let text = String(validating: bytes, as: UTF8.self), let address = try? RestreamAddress(text) {
        guard (try? RestreamAddress(address.description)) == address else {
            fatalError("an address is not read as it is written")
        }
    }
}

private struct Outcome: Equatable {
    var phase: RTMPPublisher.Phase
    var output: [UInt8] = []
}

private func outcome(of stream: [UInt8], cut sizes: [Int]) -> Outcome {
    let now = MonotonicTime(nanoseconds: 1)
    guard let address = try? RestreamAddress("rtmp://live.example.org/app") else {
        fatalError("an address is none")
    }
    let key = "the-key-of-the-stream"
    var publisher = RTMPPublisher(to: address, key: Secret(key), random: [], at: now)
    var outcome = Outcome(phase: publisher.phase)
    // Most targets shake hands, and every other one takes the stream.
    if let first = stream.first, first % 4 > 0 {
        publisher.receive(greeting.span)
        if first % 2 > 0 { publisher.receive(acceptance.span) }
    }
    var rest = stream[...]
    var sizes = sizes[...]
    while !rest.isEmpty {
        let piece = Array(rest.prefix(sizes.popFirst() ?? rest.count))
        rest = rest.dropFirst(piece.count)
        publisher.receive(piece.span)
    }
    outcome.phase = publisher.phase
    // Acknowledgements depend on how it is cut, and so are left out.
    if case .over(.refused(let words)) = publisher.phase, words.contains(key) {
        fatalError("a target has the key shown")
    }
    let format = RestreamFormat(
        width: 16, height: 16, framesPerSecond: 30,
        pictureHeader: [0, 0, 1, 0x67, 66, 0, 30, 0, 0, 1, 0x68, 1], soundConfiguration: [0x11, 0x90])
    _ = publisher.takeOutput()
    publisher.send(.format(format), waiting: 0)
    publisher.send(
        .sample(RestreamSample(kind: .keyFrame, number: 1, time: now, bytes: [0, 0, 1, 0x65, 1])), waiting: 0)
    outcome.output = publisher.takeOutput()
    guard outcome.output.isEmpty == (publisher.phase != .live) else {
        fatalError("media goes to who did not ask for it, or not to who did")
    }
    return outcome
}

private let greeting = [3] + [UInt8](repeating: 0, count: RTMPHandshake.answerLength - 1)

/// All that a server says until it takes the stream.
private let acceptance: [UInt8] = {
    let writer = RTMPChunkWriter()
    var bytes: [UInt8] = []
    let start = AMF0Value.object([
        .init("level", .string("status")), .init("code", .string("NetStream.Publish.Start")),
    ])
    for command in [
        RTMPCommand("_result", transaction: 1), RTMPCommand("_result", transaction: 4, [.number(1)]),
        RTMPCommand("onStatus", [start]),
    ] { writer.append(command.message(), to: &bytes) }
    return bytes
}()
