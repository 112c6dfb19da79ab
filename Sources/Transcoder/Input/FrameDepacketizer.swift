import Wire

/// Reassembles the payloads of one frame's packets into the format of decoders.
///
/// H.264 and HEVC become byte streams with start codes (Annex B), AV1 a series of units with sizes, and VP8 and VP9
/// lose their RTP descriptors. Malformed data is skipped or refused; all input is hostile.
package enum FrameDepacketizer {
    /// Reassembles one frame.
    /// - Parameter payloads: in order and complete.
    /// - Throws: for payloads that are truncated or malformed.
    package static func frame(_ codec: VideoCodec, _ payloads: [[UInt8]]) throws(WireError) -> [UInt8] {
        switch codec {
        case .vp8: try vp8(payloads)
        case .vp9: try vp9(payloads)
        case .h264: try h264(payloads)
        case .av1: try av1(payloads)
        case .hevc: try hevc(payloads)
        }
    }

    /// Concatenates the payloads without their descriptors.
    /// - Source: RFC 7741 §4.2.
    private static func vp8(_ payloads: [[UInt8]]) throws(WireError) -> [UInt8] {
        var frame: [UInt8] = []
        for payload in payloads where !payload.isEmpty {
            frame += payload.dropFirst(try VP8Descriptor(parsing: payload.span).length)
        }
        return frame
    }

    /// Concatenates the payloads without their descriptors, and indexes spatial layers as in a superframe of a file.
    ///
    /// - Source: RFC 9628 §4.2; VP9 bitstream specification, Annex B.
    private static func vp9(_ payloads: [[UInt8]]) throws(WireError) -> [UInt8] {
        var frame: [UInt8] = []
        var sizes: [Int] = []
        for payload in payloads where !payload.isEmpty {
            let descriptor = try VP9Descriptor(parsing: payload.span)
            if descriptor.startsFrame || sizes.isEmpty { sizes.append(0) }
            let piece = payload.dropFirst(descriptor.length)
            frame += piece
            sizes[sizes.count - 1] += piece.count
        }
        guard (2...8).contains(sizes.count) else { return frame }
        // The superframe index: sizes of four bytes each, between two markers.
        let marker = 0b1100_0000 | UInt8(3 << 3) | UInt8(sizes.count - 1)
        frame.append(marker)
        for size in sizes {
            for shift in [0, 8, 16, 24] { frame.append(UInt8(truncatingIfNeeded: size >> shift)) }
        }
        frame.append(marker)
        return frame
    }

    /// Converts single units, aggregates and fragments into units with start codes.
    /// - Source: RFC 6184 §5.6 (single), §5.7.1 (STAP-A), §5.8 (FU-A).
    private static func h264(_ payloads: [[UInt8]]) throws(WireError) -> [UInt8] {
        let startCode: [UInt8] = [0, 0, 0, 1]
        var frame: [UInt8] = []
        for payload in payloads {
            let bytes = payload.span
            guard let header = payload.first else { continue }
            switch header & 0x1F {
            case 1...23:
                frame += startCode
                frame += payload
            case 24:
                var place = 1
                while place < payload.count {
                    let length = Int(try bytes.uint16(at: place))
                    try bytes.require((place + 2)..<(place + 2 + length))
                    frame += startCode
                    frame += payload[(place + 2)..<(place + 2 + length)]
                    place += 2 + length
                }
            case 28:
                // The first fragment (start bit) provides the unit's header.
                let fragment = try bytes.uint8(at: 1)
                if fragment & 0x80 != 0 {
                    frame += startCode
                    frame.append(header & 0xE0 | fragment & 0x1F)
                }
                frame += payload[2...]
            default: continue
            }
        }
        return frame
    }

    /// Converts single units and fragments into units with start codes.
    ///
    /// Aggregation packets are not supported: all HEVC here is packetized by this server, which does not use them.
    /// - Source: RFC 7798 §4.4.1 (single), §4.4.3 (fragments).
    private static func hevc(_ payloads: [[UInt8]]) throws(WireError) -> [UInt8] {
        let startCode: [UInt8] = [0, 0, 0, 1]
        var frame: [UInt8] = []
        for payload in payloads {
            guard let header = payload.first else { continue }
            switch header >> 1 & 0x3F {
            case 0...47:
                frame += startCode
                frame += payload
            case 49:
                let (layer, fragment) = (try payload.span.uint8(at: 1), try payload.span.uint8(at: 2))
                if fragment & 0x80 != 0 {
                    frame += startCode
                    frame += [header & 0x81 | (fragment & 0x3F) << 1, layer]
                }
                frame += payload[3...]
            default: continue
            }
        }
        return frame
    }

    /// Joins the elements of all packets to units, and gives each its size.
    /// - Source: RTP Payload Format for AV1 §4.4; AV1 bitstream specification §5.3.
    private static func av1(_ payloads: [[UInt8]]) throws(WireError) -> [UInt8] {
        var units: [[UInt8]] = []
        for payload in payloads {
            let bytes = payload.span
            guard let header = payload.first else { continue }
            // W: the number of elements, of which the last has no length; 0 if every element has one.
            let count = Int(header >> 4 & 0x03)
            var isContinued = header & 0x80 != 0
            var place = 1
            var index = 0
            while place < payload.count {
                var end = payload.count
                if count == 0 || index < count - 1 {
                    let (length, next) = try number(in: bytes, at: place)
                    place = next
                    guard length <= payload.count - place else { throw .truncated }
                    end = place + length
                }
                if isContinued, !units.isEmpty {
                    units[units.count - 1] += payload[place..<end]
                } else if !isContinued {
                    units.append(Array(payload[place..<end]))
                }
                isContinued = false
                place = end
                index += 1
            }
        }
        // A temporal delimiter, which RTP omits.
        var frame: [UInt8] = [0x12, 0x00]
        for unit in units { try append(unit, to: &frame) }
        return frame
    }

    /// Writes a unit with its size, which RTP signals outside of the unit.
    private static func append(_ unit: [UInt8], to frame: inout [UInt8]) throws(WireError) {
        guard let header = unit.first else { return }
        guard header & 0x02 == 0 else { return frame += unit }
        let headerLength = header & 0x04 != 0 ? 2 : 1
        guard unit.count >= headerLength else { throw .truncated }
        frame.append(header | 0x02)
        frame += unit[1..<headerLength]
        var size = unit.count - headerLength
        repeat {
            frame.append(UInt8(size & 0x7F) | (size > 0x7F ? 0x80 : 0))
            size >>= 7
        } while size > 0
        frame += unit[headerLength...]
    }

    /// Reads a number in LEB128 of up to five bytes.
    /// - Returns: the number, and the offset after it.
    private static func number(in bytes: Span<UInt8>, at start: Int) throws(WireError) -> (Int, Int) {
        var value = 0
        for index in 0..<5 {
            let byte = try bytes.uint8(at: start + index)
            value |= Int(byte & 0x7F) << (7 * index)
            if byte & 0x80 == 0 { return (value, start + index + 1) }
        }
        throw .invalid(.leb128)
    }
}
