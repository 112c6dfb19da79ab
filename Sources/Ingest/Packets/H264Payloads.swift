import Wire

/// Splits H.264 pictures, as containers store them, into the payloads of RTP packets.
///
/// Parameter sets precede each picture at which decoders can begin, even if the encoder does not repeat them there,
/// because viewers join in the middle of a stream.
/// - Source: RFC 6184 §5.6 (single units), §5.7.1 (STAP-A), §5.8 (FU-A); ITU-T H.264 table 7-1.
enum H264Payloads {
    private static let maximumPayload = PicturePacketizer.maximumPayload

    /// NAL unit types, of the codec and of its RTP format.
    private enum UnitType {
        static let slices: ClosedRange<UInt8> = 1...5
        static let instantaneousRefresh: UInt8 = 5
        static let enhancementInformation: UInt8 = 6
        static let sequenceParameters: UInt8 = 7
        static let pictureParameters: UInt8 = 8
        static let aggregation: UInt8 = 24
        static let fragment: UInt8 = 28
    }

    /// Splits one picture; empty if it contains nothing that decoders need.
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
            // RTP makes delimiters, filler and ends of sequences redundant.
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

    /// Combines small units, as many per payload as fit.
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

    /// Ends a payload of several units; a unit that is alone becomes a payload without aggregation.
    private static func close(_ units: inout [[UInt8]], into payloads: inout [[UInt8]]) {
        defer { units.removeAll() }
        guard units.count > 1 else {
            if let only = units.first { append(only.span, to: &payloads) }
            return
        }
        // The NRI of the aggregate is the highest of its units (§5.7.1).
        let importance = units.compactMap(\.first).map { $0 & 0x60 }.max() ?? 0
        var payload = [importance | UnitType.aggregation]
        for unit in units {
            payload.append(bigEndian: UInt16(truncatingIfNeeded: unit.count))
            payload += unit
        }
        payloads.append(payload)
    }

    /// Appends a unit as one payload, or in fragments of about equal size.
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
            // Start and end bits of the fragment header (§5.8).
            let edge: UInt8 = (fragment == 0 ? 0x80 : 0) | (fragment == count - 1 ? 0x40 : 0)
            var payload: [UInt8] = [header & 0x60 | UnitType.fragment, edge | header & 0x1F]
            payload.reserveCapacity(end - start + 2)
            payload.append(unit.extracting(start..<end))
            payloads.append(payload)
        }
    }
}
