import Wire

/// Splits HEVC pictures, as containers store them, into the payloads of RTP packets, for the transcoder.
/// - Source: RFC 7798 §4.4.1 (single units), §4.4.3 (fragments); ITU-T H.265 table 7-1.
enum HEVCPayloads {
    /// NAL unit types, of the codec and of its RTP format.
    private enum UnitType {
        static let slices: ClosedRange<UInt8> = 0...31
        static let parameters: ClosedRange<UInt8> = 32...34
        static let sequenceParameters: UInt8 = 33
        static let fragment: UInt8 = 49
    }

    /// Bytes of a fragment's payload header (two) and fragment header (one).
    private static let fragmentHeader = 3

    /// Splits one picture; empty if it contains no slice.
    /// - Parameters:
    ///   - picture: units with lengths before them, as `configuration` specifies.
    ///   - needsParameters: whether decoders begin at this picture.
    static func payloads(
        of picture: Span<UInt8>, _ configuration: HEVCConfiguration, needsParameters: Bool
    ) throws(WireError) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var hasSequence = false
        var hasSlices = false
        for unit in try configuration.units(in: picture) {
            let type = try picture.uint8(at: unit.lowerBound) >> 1 & 0x3F
            if UnitType.slices.contains(type) { hasSlices = true }
            if type == UnitType.sequenceParameters { hasSequence = true }
            // Decoding does not need delimiters, filler or messages.
            guard type <= UnitType.parameters.upperBound else { continue }
            units.append(try picture.bytes(unit))
        }
        guard hasSlices else { return [] }
        // Sets inside the picture follow these, and override them.
        if needsParameters, !hasSequence { units = configuration.parameterSets + units }
        return units.flatMap(fragments)
    }

    /// A unit as one payload, or in fragments.
    private static func fragments(_ unit: [UInt8]) -> [[UInt8]] {
        guard unit.count > PicturePacketizer.maximumPayload, let first = unit.first else { return [unit] }
        let second = unit[1]
        let room = PicturePacketizer.maximumPayload - fragmentHeader
        var fragments: [[UInt8]] = []
        var rest = unit.dropFirst(2)
        while !rest.isEmpty {
            let piece = rest.prefix(room)
            let edge: UInt8 = (fragments.isEmpty ? 0x80 : 0) | (piece.count == rest.count ? 0x40 : 0)
            fragments.append(
                [first & 0x81 | UnitType.fragment << 1, second, edge | first >> 1 & 0x3F] + piece)
            rest = rest.dropFirst(piece.count)
        }
        return fragments
    }
}
