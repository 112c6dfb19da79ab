// Fuzz entry of FLV's tags with a FourCC and their configurations: what is read lies within the input, and what
// pictures are cut into gives them again.
// Seeds: FLV/*.hex

import Base
import Ingest
import TestSupport
import Transcoder
import Wire

func fuzzFLV(_ input: Span<UInt8>) {
    guard let bytes = try? input.bytes(0..<input.count) else { return }
    if let tag = try? FLVVideoTag(parsing: input) {
        guard tag.body.upperBound <= input.count else { fatalError("a body outside of its tag") }
        let body = Array(bytes[tag.body])
        checkConfigurations(body)
        for (name, record) in records { checkPictures(body, name, record) }
    }
    if let tag = try? FLVAudioTag(parsing: input), tag.body.upperBound > input.count {
        fatalError("a body outside of its tag")
    }
    checkConfigurations(bytes)
}

/// By FourCC, as encoders write them.
private let records: [(name: String, bytes: [UInt8])] = [
    (
        "hvc1",
        hexBytes(
            """
            0101600000009000000000003cf000fcfdf8f800000f03200001001840010c01ffff016000000300900000030000
            03003c959009210001002942010101600000030090000003000003003ca0208316595912930bc05a020000030002
            000003003c1022000100064401c073c089
            """)
    ),
    ("av01", hexBytes("81000c000a0a00000002aff79b5f2008")), ("vp09", hexBytes("000a820202020000")),
]

private func checkConfigurations(_ bytes: [UInt8]) {
    if let configuration = try? HEVCConfiguration(parsing: bytes.span) {
        guard configuration.parameterSets.count >= 3 else { fatalError("a decoder lacks parameters") }
        _ = configuration.resolution
        for unit in (try? configuration.units(in: bytes.span)) ?? [] {
            guard unit.upperBound <= bytes.count, unit.count > 2 else { fatalError("a unit that is none") }
        }
    }
    _ = (try? AV1Configuration(parsing: bytes.span))?.resolution
    _ = try? VP9Configuration(parsing: bytes.span)
    _ = try? AVCConfiguration(parsing: bytes.span)
    _ = try? AACConfiguration(parsing: bytes.span)
}

private func checkPictures(_ body: [UInt8], _ name: String, _ record: [UInt8]) {
    let now = MonotonicTime(nanoseconds: 1)
    var media = IngestMedia(isDecoding: true, seed: 9)
    let codec = Array(name.utf8)
    var effects = media.receive(video: ([0x90] + codec + record).span, timestamp: 0, at: now)
    effects += media.receive(video: ([0x93] + codec + body).span, timestamp: 0, at: now)
    effects += media.advance(to: now + .seconds(2)) + media.open()
    for case .picture(let picture) in effects {
        let payloads = picture.packets.map { packet in
            guard packet.count <= 1_200, let header = try? RTPHeader(parsing: packet.span) else {
                fatalError("a packet of \(packet.count) bytes that is none")
            }
            return Array(packet[header.payloadRange])
        }
        switch name {
        case "vp09":
            guard (try? FrameDepacketizer.frame(.vp9, payloads)) == body else {
                fatalError("a picture of VP9 is not what it was")
            }
        case "av01":
            guard let frame = try? FrameDepacketizer.frame(.av1, payloads),
                let units = try? AV1Units(parsing: frame.span), let sent = try? AV1Units(parsing: body.span),
                units.all.filter({ $0.kind != .sequenceHeader })
                    == sent.all.filter({ $0.kind != .sequenceHeader })
            else { fatalError("a picture of AV1 is not what it was") }
        default:
            guard (try? FrameDepacketizer.frame(.hevc, payloads)) != nil else {
                fatalError("a picture of HEVC cannot be put together")
            }
        }
    }
}
