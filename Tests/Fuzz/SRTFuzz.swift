// Fuzz entry of publishers by SRT: what they say they want, and transport streams, of which the same comes however they
// are cut.
// Seeds: SRT/*.hex

import Base
import Ingest
import Wire

func fuzzSRT(_ input: Span<UInt8>) {
    guard let bytes = try? input.bytes(0..<input.count) else { return }
    let text = String(decoding: bytes, as: UTF8.self)
    if let field = (try? SRTStreamID(parsing: text))?.field.exposed {
        let parts = field.split(separator: "?", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains("/"), parts[1].hasPrefix("token="),
            !field.contains("&"), field.utf8.count <= SRTStreamID.limit + 8
        else { fatalError("a streamid became more than a name and a key") }
    }
    let whole = media(of: bytes, cut: [])
    let cut = media(of: bytes, cut: bytes.map { Int($0) + 1 })
    guard whole == cut else { fatalError("a stream cut differently gives something else") }
}

private func media(of stream: [UInt8], cut sizes: [Int]) -> [IngestMedia.Effect] {
    let now = MonotonicTime(nanoseconds: 1)
    var reader = TransportStreamMedia()
    var media = IngestMedia(isDecoding: true, seed: 5)
    var result: [IngestMedia.Effect] = []
    var rest = stream[...]
    var sizes = sizes[...]
    while !rest.isEmpty {
        let piece = Array(rest.prefix(sizes.popFirst() ?? rest.count))
        rest = rest.dropFirst(piece.count)
        for effect in reader.receive(piece.span, at: now, into: &media) {
            // What is refused is not listened to.
            if case .refuse = effect { return [effect] }
            if case .begin = effect { result += media.open() }
            // Reports and notices stand elsewhere among media that waited for a session.
            switch effect {
            case .picture, .sound, .soundFormat: result.append(effect)
            case .begin, .notice, .report, .refuse: break
            }
        }
    }
    for case .picture(let picture) in result {
        for packet in picture.packets {
            guard packet.count <= 1_200, (try? RTPHeader(parsing: packet.span)) != nil else {
                fatalError("a packet of \(packet.count) bytes that is none")
            }
        }
    }
    return result
}
