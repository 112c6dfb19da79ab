// Fuzz entry of composing: payloads of any codec, late, twice, out of order and captured at any time, reach real
// decoders, and the composition goes on at its own pace.
// Seeds: RTP/*-vp8.rtp.hex

import Base
import Transcoder
import Wire

func fuzzComposition(_ input: Span<UInt8>) {
    guard let bytes = try? input.bytes(0..<input.count), bytes.count > 12 else { return }
    var settings = CompositionSettings()
    (settings.width, settings.height, settings.framesPerSecond) = (128, 96, 10)
    var people = (0..<2).map { CompositionSpeaker(id: "\($0)", name: "\($0)") }
    for index in people.indices {
        people[index].video = UInt64(index * 2)
        people[index].audio = UInt64(index * 2 + 1)
    }
    let scene = CompositionScene(settings: settings, speakers: people)
    let composition = Composition(scene, seed: 1, at: .zero)
    var now = MonotonicTime.zero
    var last = now
    for turn in 0..<24 {
        let byte = bytes[turn % bytes.count]
        let start = min(Int(byte) % 24, bytes.count)
        var packet = InputPacket(
            sequenceNumber: Int64(turn) ^ Int64(byte % 4), timestamp: UInt32(turn / 2 * 3_000),
            marker: byte % 3 != 0, codec: InputCodec(rawValue: byte % 5) ?? .vp8,
            isEntryPoint: byte % 2 == 0, epoch: UInt32(byte / 100), arrival: now,
            payload: Array(bytes[start...]))
        if byte % 7 == 0 { packet.captured = now - .milliseconds(Int64(byte)) }
        if byte == 255 { packet.captured = .distantFuture }
        composition.receive(packet, of: UInt64(byte % 5), at: now)
        now = now + .milliseconds(Int64(byte % 64))
        for made in composition.advance(to: now) {
            guard made.captured <= now, made.bytes.count <= OutputPacket.limit else {
                fatalError("a packet out of its time or place")
            }
            if made.kind == .audio {
                guard made.captured >= last else { fatalError("the mix goes backwards") }
                last = made.captured
            }
        }
        if byte % 11 == 0 { people[0].hasPicture.toggle() }
        if byte % 13 == 0 {
            composition.update(CompositionScene(settings: settings, speakers: people), at: now)
        }
        composition.note(cost: .milliseconds(Int64(byte % 128)), at: now)
    }
}
