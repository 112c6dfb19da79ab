/// Parses an H.264 payload as far as forwarding needs it.
///
/// A key frame is an IDR picture, or the sequence parameter set that browsers send immediately before it.
/// - Source: RFC 6184 §5.2 (structures), §5.6 (single), §5.7.1 (STAP), §5.8 (FU).
enum H264Payload {
    /// - Source: ITU-T H.264 table 7-1, RFC 6184 table 1.
    private enum UnitType {
        static let slice: UInt8 = 1
        static let instantaneousRefresh: UInt8 = 5
        static let enhancementInformation: UInt8 = 6
        static let sequenceParameters: UInt8 = 7
        static let pictureParameters: UInt8 = 8
        static let accessUnitDelimiter: UInt8 = 9
        static let aggregationA: UInt8 = 24
        static let aggregationB: UInt8 = 25
        static let fragmentA: UInt8 = 28
        static let fragmentB: UInt8 = 29
    }

    /// - Parameter marker: the marker bit of the RTP header.
    static func describe(_ payload: Span<UInt8>, marker: Bool) throws(WireError) -> VideoPacketInfo {
        var info = VideoPacketInfo()
        info.endsFrame = marker
        let type = try payload.uint8(at: 0) & 0x1F
        switch type {
        case UnitType.aggregationA: try describeAggregation(payload, from: 1, &info)
        // A decoding order number follows the header (RFC 6184 §5.7.1, §5.8).
        case UnitType.aggregationB: try describeAggregation(payload, from: 3, &info)
        case UnitType.fragmentA: try describeFragment(payload, headerLength: 2, &info)
        case UnitType.fragmentB: try describeFragment(payload, headerLength: 4, &info)
        case 1..<UnitType.aggregationA: describeUnit(type, payload, 1..<payload.count, &info)
        default: break
        }
        return info
    }

    private static func describeAggregation(
        _ payload: Span<UInt8>, from start: Int, _ info: inout VideoPacketInfo
    ) throws(WireError) {
        var offset = start
        repeat {
            let length = try Int(payload.uint16(at: offset))
            guard length > 0 else { throw .invalid(.h264Aggregation) }
            let unit = (offset &+ 2)..<(offset &+ 2 &+ length)
            try payload.require(unit)
            let type = try payload.uint8(at: unit.lowerBound) & 0x1F
            describeUnit(type, payload, (unit.lowerBound &+ 1)..<unit.upperBound, &info)
            offset = unit.upperBound
        } while offset < payload.count
    }

    private static func describeFragment(
        _ payload: Span<UInt8>, headerLength: Int, _ info: inout VideoPacketInfo
    ) throws(WireError) {
        let header = try payload.uint8(at: 1)
        let type = header & 0x1F
        if header & 0x80 != 0 {
            try payload.require(headerLength &+ 1)
            describeUnit(type, payload, headerLength..<payload.count, &info)
        } else {
            try payload.require(3)
            info.isKeyFrame = type == UnitType.instantaneousRefresh
        }
    }

    /// - Parameter body: a NAL unit, or the beginning of one, without its header byte.
    private static func describeUnit(
        _ type: UInt8, _ payload: Span<UInt8>, _ body: Range<Int>, _ info: inout VideoPacketInfo
    ) {
        switch type {
        case UnitType.slice, UnitType.instantaneousRefresh:
            let isKeyFrame = type == UnitType.instantaneousRefresh
            if isKeyFrame { info.isKeyFrame = true }
            // The first slice begins with macroblock 0, which is coded as a single 1 bit.
            guard !body.isEmpty, payload[body.lowerBound] & 0x80 != 0 else { return }
            info.startsFrame = true
            guard isKeyFrame else { return }
            if !info.startsKeyFrame { info.mayFollowHead = true }
            info.startsKeyFrame = true
        case UnitType.sequenceParameters:
            info.isKeyFrame = true
            info.startsKeyFrame = true
            info.startsFrame = true
            info.resolution = try? H264SequenceParameters(parsing: payload.extracting(body)).resolution
        case UnitType.pictureParameters, UnitType.enhancementInformation, UnitType.accessUnitDelimiter:
            info.startsFrame = true
        default: break
        }
    }
}

extension WireError.Field {
    /// An empty NAL unit in an aggregation packet.
    package static var h264Aggregation: Self { .init("h264.aggregation") }
    /// An invalid parameter set, or a picture of more than 65,536 pixels in width or height.
    package static var h264SequenceParameters: Self { .init("h264.sequenceParameters") }
}
