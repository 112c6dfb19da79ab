/// Reads an Opus packet's table of contents.
/// - Source: RFC 6716 §3.1 (TOC byte), §3.2 (frame counts); RFC 7587 §3.1.3 (discontinuous transmission).
package enum OpusPayload {
    /// Longest packet in ticks: 120 ms.
    private static let maximumDuration = 5_760

    /// Duration in ticks of 48 kHz: 120 (2.5 ms) to 5,760 (120 ms).
    package static func duration(_ payload: Span<UInt8>) throws(WireError) -> Int {
        let toc = try payload.uint8(at: 0)
        let frames: Int
        switch toc & 0x03 {
        case 0: frames = 1
        case 1, 2: frames = 2
        default: frames = try Int(payload.uint8(at: 1) & 0x3F)
        }
        let duration = frames &* frameDuration(configuration: toc >> 3)
        guard frames > 0, duration <= maximumDuration else { throw .invalid(.opusFrameCount) }
        return duration
    }

    /// Duration of one frame in ticks.
    ///
    /// - Parameter configuration: 5 bits: SILK up to 11, hybrid up to 15, then CELT.
    private static func frameDuration(configuration: UInt8) -> Int {
        switch configuration {
        case 0..<12:
            switch configuration & 0x03 {
            case 0: 480
            case 1: 960
            case 2: 1_920
            default: 2_880
            }
        case 12..<16: configuration & 0x01 == 0 ? 480 : 960
        default: 120 << Int(configuration & 0x03)
        }
    }
}

extension WireError.Field {
    /// No frame, or more than 120 ms of them.
    package static var opusFrameCount: Self { .init("opus.frameCount") }
}
