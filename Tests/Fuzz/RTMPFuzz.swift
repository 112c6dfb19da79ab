// Fuzz entry of publishers by RTMP: however the stream is cut, the same comes of it, and what came of media is packets.
// Seeds: RTMP/*.hex

import Base
import Ingest
import Wire

func fuzzRTMP(_ input: Span<UInt8>) {
    guard let bytes = try? input.bytes(0..<input.count) else { return }
    if let values = try? AMF0Value.sequence(parsing: input) {
        var written: [UInt8] = []
        for value in values { value.append(to: &written) }
        // Numbers that are none are equal to nothing, so bytes are compared.
        var again: [UInt8] = []
        for value in (try? AMF0Value.sequence(parsing: written.span)) ?? [] { value.append(to: &again) }
        guard written == again else { fatalError("values are not read as they were written") }
    }
    let whole = outcome(of: bytes, cut: [])
    let cut = outcome(of: bytes, cut: bytes.map { Int($0 % 11) + 1 })
    guard whole == cut else { fatalError("a stream cut differently gives something else") }
}

/// What came of a stream of bytes.
private struct Outcome: Equatable {
    var media: [[UInt8]] = []
    var end: String?
}

private func outcome(of stream: [UInt8], cut sizes: [Int]) -> Outcome {
    var outcome = Outcome()
    let now = MonotonicTime(nanoseconds: 1)
    var session = RTMPSession(random: [], at: now)
    var media = IngestMedia(isDecoding: true, seed: 5)
    // Every other stream is that of somebody who publishes already.
    if stream.first.map({ $0 & 1 == 0 }) ?? false {
        _ = session.receive(introduction.span, at: now)
        _ = session.accept(at: now)
        guard session.isPublishing else { fatalError("an encoder could not begin to publish") }
    }
    var rest = stream[...]
    var sizes = sizes[...]
    while !rest.isEmpty, !session.isOver {
        let piece = Array(rest.prefix(sizes.popFirst() ?? rest.count))
        rest = rest.dropFirst(piece.count)
        for effect in session.receive(piece.span, at: now) {
            switch effect {
            case .video(let bytes, let timestamp):
                outcome.media.append(bytes)
                check(media.receive(video: bytes.span, timestamp: timestamp, at: now), &media)
            case .audio(let bytes, let timestamp):
                outcome.media.append(bytes)
                check(media.receive(audio: bytes.span, timestamp: timestamp, at: now), &media)
            case .metadata(let members): check(media.receive(metadata: members, at: now), &media)
            case .finish(let reason): outcome.end = reason.name
            case .send, .publish: break
            }
        }
    }
    return outcome
}

/// All that an encoder says before it publishes.
private let introduction: [UInt8] = {
    let writer = RTMPChunkWriter()
    var bytes = [3] + [UInt8](repeating: 0, count: 2 * RTMPHandshake.blockLength)
    let properties = AMF0Value.object([.init("app", .string(RTMPSession.application))])
    writer.append(RTMPCommand("connect", transaction: 1, object: properties).message(), to: &bytes)
    writer.append(RTMPCommand("publish", transaction: 2, [.string("talk")]).message(on: 1), to: &bytes)
    return bytes
}()

private func check(_ effects: [IngestMedia.Effect], _ media: inout IngestMedia) {
    for effect in effects {
        switch effect {
        case .begin: check(media.open(), &media)
        case .picture(let picture):
            for packet in picture.packets {
                guard packet.count <= 1_200, (try? RTPHeader(parsing: packet.span)) != nil else {
                    fatalError("a packet of \(packet.count) bytes that is none")
                }
            }
        case .sound, .soundFormat, .notice, .report, .refuse: break
        }
    }
}
