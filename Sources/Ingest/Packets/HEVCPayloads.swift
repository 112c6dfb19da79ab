import Wire

/// Cuts pictures of HEVC, as containers hold them, into payloads of RTP packets, for the transcoder.
/// - Source: RFC 7798 §4.4.1 (single units), §4.4.3 (fragments); ITU-T H.265 table 7-1.
enum HEVCPayloads {
    private enum UnitType {
        static let slices: ClosedRange<UInt8> = 0...31
        static let parameters: ClosedRange<UInt8> = 32...34
        static let sequenceParameters: UInt8 = 33
        static let fragment: UInt8 = 49
    }

    private static let fragmentHeader = 3

    /// One picture's payloads; empty for one of nothing that decoders need.
    /// - Parameters:
    ///   - picture: units with lengths before them, as `configuration` has it.
    ///   - needsParameters: whether a decoder begins here.
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
            // Delimiters, filler and messages say nothing that this needs.
            guard type <= UnitType.parameters.upperBound else { continue }
            units.append(try picture.bytes(unit))
        }
        guard hasSlices else { return [] }
        // What the picture brings with it comes later, and counts.
        if needsParameters, !hasSequence { units = configuration.parameterSets + units }
        return units.flatMap(fragments)
    }

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
