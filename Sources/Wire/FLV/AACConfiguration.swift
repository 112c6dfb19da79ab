/// What a decoder of AAC has to know before the first frame: an AudioSpecificConfig.
/// - Source: ISO/IEC 14496-3 §1.6.2.1, tables 1.17 (object types) and 1.18 (sampling frequencies).
package struct AACConfiguration: Equatable, Sendable {
    /// 2 is LC; 5 and 29 add what makes it HE-AAC.
    package let objectType: UInt8
    /// In hertz, of the core; what HE-AAC adds doubles it.
    package let sampleRate: Int
    /// By `channelConfiguration`; 0 where the stream itself tells.
    package let channels: Int

    private static let sampleRates = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
    ]

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        var reader = BitReader(0..<bytes.count)
        var type = try reader.bits(5, in: bytes)
        if type == 31 { type = try 32 + reader.bits(6, in: bytes) }
        objectType = UInt8(truncatingIfNeeded: type)
        let index = try Int(reader.bits(4, in: bytes))
        if index == 15 {
            sampleRate = try Int(reader.bits(24, in: bytes))
        } else {
            guard Self.sampleRates.indices.contains(index) else { throw .invalid(.aacSampleRate) }
            sampleRate = Self.sampleRates[index]
        }
        guard (7_350...96_000).contains(sampleRate) else { throw .invalid(.aacSampleRate) }
        let configuration = try Int(reader.bits(4, in: bytes))
        guard configuration <= 7 else { throw .invalid(.aacChannels) }
        // 7 is 7.1.
        channels = configuration == 7 ? 8 : configuration
    }

    /// LC, with or without what makes it HE-AAC: what encoders for live streams make.
    package var isCommon: Bool { [2, 5, 29].contains(objectType) }
}

extension WireError.Field {
    /// None that there is.
    package static var aacSampleRate: Self { .init("aac.sampleRate") }
    /// An arrangement of loudspeakers that is reserved.
    package static var aacChannels: Self { .init("aac.channels") }
}
