import Wire

/// Cuts pictures of H.264, as containers hold them, into payloads of RTP packets.
///
/// Parameter sets go before each picture that a decoder can begin with, whether or not the encoder repeats them there:
/// viewers come in the middle.
/// - Source: RFC 6184 §5.6 (single units), §5.7.1 (STAP-A), §5.8 (FU-A); ITU-T H.264 table 7-1.
enum H264Payloads {
    private static let maximumPayload = PicturePacketizer.maximumPayload

    private enum UnitType {
        static let slices: ClosedRange<UInt8> = 1...5
        static let instantaneousRefresh: UInt8 = 5
        static let enhancementInformation: UInt8 = 6
        static let sequenceParameters: UInt8 = 7
        static let pictureParameters: UInt8 = 8
        static let aggregation: UInt8 = 24
        static let fragment: UInt8 = 28
    }

    /// One picture's payloads; empty for one of nothing that decoders need.
    /// - Parameters:
    ///   - picture: units with lengths before them, as `configuration` has it.
    ///   - needsParameters: whether a decoder begins here, whatever kind of picture it is.
    static func payloads(
        of picture: Span<UInt8>, _ configuration: AVCConfiguration, needsParameters: Bool
    ) throws(WireError) -> [[UInt8]] {
        let units = try configuration.units(in: picture)
        var heads: [[UInt8]] = []
        var slices: [Range<Int>] = []
        var isRefresh = false
        var hasParameters = false
        for unit in units {
            let type = try picture.uint8(at: unit.lowerBound) & 0x1F
            switch type {
            case UnitType.slices:
                slices.append(unit)
                if type == UnitType.instantaneousRefresh { isRefresh = true }
            case UnitType.enhancementInformation, UnitType.sequenceParameters, UnitType.pictureParameters:
                heads.append(try picture.bytes(unit))
                if type == UnitType.sequenceParameters { hasParameters = true }
            // Delimiters, filler and ends of sequences say nothing that RTP does not.
            default: continue
            }
        }
        if isRefresh || needsParameters, !hasParameters {
            heads = configuration.sequenceParameters + configuration.pictureParameters + heads
        }
        var payloads = Self.aggregated(heads)
        for slice in slices { Self.append(picture.extracting(slice), to: &payloads) }
        return payloads
    }

    /// Small units, as many in a payload as fit.
    private static func aggregated(_ units: [[UInt8]]) -> [[UInt8]] {
        var payloads: [[UInt8]] = []
        var waiting: [[UInt8]] = []
        var size = 1
        for unit in units {
            if size + 2 + unit.count > maximumPayload {
                close(&waiting, into: &payloads)
                size = 1
            }
            waiting.append(unit)
            size += 2 + unit.count
        }
        close(&waiting, into: &payloads)
        return payloads
    }

    private static func close(_ units: inout [[UInt8]], into payloads: inout [[UInt8]]) {
        defer { units.removeAll() }
        guard units.count > 1 else {
            if let only = units.first { append(only.span, to: &payloads) }
            return
        }
        // As important as the most important of them (§5.7.1, NRI).
        let importance = units.compactMap(\.first).map { $0 & 0x60 }.max() ?? 0
        var payload = [importance | UnitType.aggregation]
        for unit in units {
            payload.append(bigEndian: UInt16(truncatingIfNeeded: unit.count))
            payload += unit
        }
        payloads.append(payload)
    }

    /// A unit as it is, or in fragments of even size.
    private static func append(_ unit: Span<UInt8>, to payloads: inout [[UInt8]]) {
        guard unit.count > maximumPayload else {
            var payload: [UInt8] = []
            payload.append(unit)
            return payloads.append(payload)
        }
        let body = unit.count - 1
        let count = (body + maximumPayload - 3) / (maximumPayload - 2)
        let size = (body + count - 1) / count
        let header = unit[0]
        for fragment in 0..<count {
            let start = min(1 + fragment * size, unit.count)
            let end = min(start + size, unit.count)
            let edge: UInt8 = (fragment == 0 ? 0x80 : 0) | (fragment == count - 1 ? 0x40 : 0)
            var payload: [UInt8] = [header & 0x60 | UnitType.fragment, edge | header & 0x1F]
            payload.reserveCapacity(end - start + 2)
            payload.append(unit.extracting(start..<end))
            payloads.append(payload)
        }
    }
}
