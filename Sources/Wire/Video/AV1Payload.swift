/// Parses an AV1 payload as far as forwarding needs it.
///
/// Packets that only continue an OBU show nothing; for those the dependency descriptor is needed.
/// - Source: RTP Payload Format for AV1 §4.4 (aggregation header), §4.5; AV1 bitstream specification §5.3
///   (OBU header), §5.5 (sequence header), §5.9.2 (frame header).
enum AV1Payload {
    private enum UnitType {
        static let sequenceHeader: UInt8 = 1
        static let frameHeader: UInt8 = 3
        static let frame: UInt8 = 6
    }

    /// - Parameter marker: the marker bit of the RTP header.
    static func describe(_ payload: Span<UInt8>, marker: Bool) throws(WireError) -> VideoPacketInfo {
        var info = VideoPacketInfo()
        info.endsFrame = marker
        let aggregation = try payload.uint8(at: 0)
        let continues = aggregation & 0x80 != 0
        let count = Int(aggregation >> 4 & 0x03)
        let startsSequence = aggregation & 0x08 != 0
        guard !(continues && startsSequence) else { throw .invalid(.av1AggregationHeader) }
        try payload.require(2)

        var offset = 1
        var index = 0
        while offset < payload.count {
            var end = payload.count
            // The last element has no length if the aggregation header counts the elements.
            if count == 0 || index < count &- 1 {
                let length = try LEB128(payload, at: offset)
                offset = length.end
                guard length.value <= payload.count &- offset else { throw .truncated }
                end = offset &+ length.value
            }
            if end > offset, !(index == 0 && continues) {
                describeUnit(payload, offset..<end, &info)
            }
            offset = end
            index &+= 1
        }
        guard startsSequence else { return info }
        info.isKeyFrame = true
        info.startsKeyFrame = true
        info.startsFrame = true
        return info
    }

    private static func describeUnit(
        _ payload: Span<UInt8>, _ unit: Range<Int>, _ info: inout VideoPacketInfo
    ) {
        let header = payload[unit.lowerBound]
        var body = unit.lowerBound &+ 1
        if header & 0x04 != 0, body < unit.upperBound {
            info.temporalLayer = payload[body] >> 5
            info.spatialLayer = payload[body] >> 3 & 0x03
            body &+= 1
        }
        // An OBU may contain its size, although the element already has a length.
        if header & 0x02 != 0, let size = try? LEB128(payload, at: body) { body = size.end }
        guard body < unit.upperBound else { return }
        switch header >> 3 & 0x0F {
        case UnitType.sequenceHeader:
            info.isKeyFrame = true
            info.startsKeyFrame = true
            info.startsFrame = true
            info.resolution = try? AV1SequenceHeader.resolution(payload, body..<unit.upperBound)
        case UnitType.frame, UnitType.frameHeader:
            info.startsFrame = true
            // show_existing_frame clear, frame_type KEY_FRAME.
            if payload[body] & 0xE0 == 0 { info.isKeyFrame = true }
        default: break
        }
    }
}

/// A number in groups of seven bits, the lowest group first.
/// - Source: AV1 bitstream specification §4.10.5.
struct LEB128 {
    let value: Int
    /// Offset after the last byte.
    let end: Int

    init(_ bytes: Span<UInt8>, at offset: Int) throws(WireError) {
        var value: UInt64 = 0
        for index in 0..<8 {
            let byte = try bytes.uint8(at: offset &+ index)
            value |= UInt64(byte & 0x7F) << UInt64(index &* 7)
            guard byte & 0x80 == 0 else { continue }
            guard value <= UInt64(UInt32.max) else { break }
            self.value = Int(value)
            end = offset &+ index &+ 1
            return
        }
        throw .invalid(.leb128)
    }
}

extension WireError.Field {
    /// A packet that both continues an OBU and starts a coded video sequence.
    package static var av1AggregationHeader: Self { .init("av1.aggregationHeader") }
    /// A number with too many bytes, or too large.
    package static var leb128: Self { .init("av1.leb128") }
}
