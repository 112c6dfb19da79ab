/// What an AAC decoder needs before the first frame: an AudioSpecificConfig.
/// - Source: ISO/IEC 14496-3 §1.6.2.1, tables 1.17 (object types) and 1.18 (sampling frequencies).
package struct AACConfiguration: Equatable, Sendable {
    /// 2 is LC; 5 and 29 are the extensions that make it HE-AAC.
    package let objectType: UInt8
    /// In hertz, for the core; the HE-AAC extension doubles it.
    package let sampleRate: Int
    /// From `channelConfiguration`; 0 if only the stream itself contains it.
    package let channels: Int

    private static let sampleRates = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
    ]

    /// Parses an AudioSpecificConfig.
    /// - Throws: `.truncated`, or `.invalid` for a reserved sampling rate or channel configuration.
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
        // Configuration 7 is 7.1.
        channels = configuration == 7 ? 8 : configuration
    }

    /// Whether it is LC, with or without the HE-AAC extensions: what live encoders produce.
    package var isCommon: Bool { [2, 5, 29].contains(objectType) }
}

extension WireError.Field {
    /// A reserved sampling rate index, or a rate out of range.
    package static var aacSampleRate: Self { .init("aac.sampleRate") }
    /// A reserved channel configuration.
    package static var aacChannels: Self { .init("aac.channels") }
}
