// Fuzz entry of what crosses between the server and its transcoder, and of what the transcoder does with payloads:
// messages that parse mean the same when written again, and frames go forward.
// Seeds: RTP/*.rtp.hex

import Base
import Transcoder
import Wire

func fuzzTranscoder(_ input: Span<UInt8>) {
    guard let kind = try? input.uint8(at: 0), let bytes = try? input.bytes(0..<input.count) else { return }
    let body = MessageReader(Array(bytes.dropFirst()))
    if let request = try? TranscoderRequest(kind % 8, body) { check(request) }
    if let report = try? TranscoderReport(kind % 8, body) { check(report) }
    _ = try? PreviewRequest(bytes)
    _ = try? PreviewPicture.read(bytes)
    if let report = try? RecordingReport(bytes), (try? RecordingReport(report.bytes)) != report {
        fatalError("\(report) does not survive being written")
    }
    if let report = try? PackagingReport(bytes), (try? PackagingReport(report.bytes)) != report {
        fatalError("\(report) does not survive being written")
    }
    if let report = try? ClipReport(bytes), (try? ClipReport(report.bytes)) != report {
        fatalError("\(report) does not survive being written")
    }
    var pieces = MessageAssembler()
    try? pieces.receive(bytes) { kind, body in _ = try? TranscoderRequest(kind, body) }

    guard let header = try? RTPHeader(parsing: input),
        let payload = try? input.bytes(header.payloadRange)
    else { return }
    for codec in [VideoCodec.vp8, .vp9, .h264, .av1, .hevc] {
        _ = try? FrameDepacketizer.frame(codec, [payload, Array(payload.dropFirst(7)), payload])
    }
    assemble(payload)
}

private func check(_ request: TranscoderRequest) {
    var bytes: [UInt8] = []
    request.append(to: &bytes)
    var pieces = MessageAssembler()
    try? pieces.receive(bytes) { kind, body in
        guard let again = try? TranscoderRequest(kind, body), again == request else {
            fatalError("\(request) does not survive being written")
        }
    }
}

private func check(_ report: TranscoderReport) {
    var bytes: [UInt8] = []
    report.append(to: &bytes)
    var pieces = MessageAssembler()
    try? pieces.receive(bytes) { kind, body in
        guard let again = try? TranscoderReport(kind, body), again == report else {
            // A text that is no UTF-8 is mended.
            if case .log = report { return }
            fatalError("\(report) does not survive being written")
        }
    }
}

/// The bytes decide which packets come, in which order.
private func assemble(_ bytes: [UInt8]) {
    var assembler = FrameAssembler()
    var now = MonotonicTime.zero
    var last: UInt32 = 0
    for byte in bytes.prefix(200) {
        now = now + .milliseconds(Int64(byte % 50))
        let number = Int64(byte)
        let packet = InputPacket(
            sequenceNumber: number, timestamp: UInt32(number / 3), marker: number % 3 == 2,
            codec: InputCodec(rawValue: byte % 5) ?? .vp8, isEntryPoint: number % 7 == 0, arrival: now,
            payload: Array(bytes.prefix(Int(byte % 16))))
        for frame in assembler.insert(packet, at: now) + assembler.advance(to: now) {
            guard frame.timestamp >= last else { fatalError("frames go backwards") }
            last = frame.timestamp
        }
    }
}
