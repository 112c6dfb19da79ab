import Peer
import Wire

/// Parses the packets of one m-line with its negotiated formats and extension IDs.
package struct PacketReader {
    private let formats: [MediaFormat]
    private let ids: ExtensionIDs

    package init(formats: [MediaFormat], ids: ExtensionIDs) {
        self.formats = formats
        self.ids = ids
    }

    /// The codec of a payload type; nil for RTX, for RED and for types that were not negotiated.
    package func codec(ofPayloadType payloadType: UInt8) -> MediaCodec? {
        for format in formats where format.payloadType == payloadType { return format.codec }
        return nil
    }

    /// The media payload type that an RTX payload type belongs to; nil for other types.
    package func originalPayloadType(ofRepair payloadType: UInt8) -> UInt8? {
        for format in formats where format.repairPayloadType == payloadType { return format.payloadType }
        return nil
    }

    /// The payload type of the blocks in RED packets (RFC 2198); nil for other packets.
    package func blockPayloadType(ofRedundancy payloadType: UInt8) -> UInt8? {
        for format in formats where format.redundancyPayloadType == payloadType { return format.payloadType }
        return nil
    }

    /// Parses everything that a packet contains; its sequence number is not extended yet.
    ///
    /// - Parameter structure: from the latest key frame with a dependency descriptor; nil before the first.
    /// - Throws: `WireError.invalid(.rtpPayloadType)` for a payload type that was not negotiated. A video payload
    ///   that cannot be parsed is no error: the packet is forwarded, because it fills a place in the sequence.
    package func read(
        _ packet: Span<UInt8>, _ header: RTPHeader, structure: DependencyStructure?
    ) throws(WireError) -> MediaPacket {
        guard let codec = codec(ofPayloadType: header.payloadType) else { throw .invalid(.rtpPayloadType) }
        let passedOn = PassedExtensions(of: header, in: packet, ids: ids)
        var result = MediaPacket(header: header, codec: codec, passedOn: passedOn)
        guard let video = codec.video, !header.payloadRange.isEmpty else { return result }
        if let range = passedOn.dependencyDescriptor {
            result.dependency = try? DependencyDescriptor(
                parsing: packet.extracting(range), structure: structure)
        }
        let payload = packet.extracting(header.payloadRange)
        result.video = try? VideoPayload.describe(
            video, payload: payload, marker: header.marker, dependencyDescriptor: result.dependency)
        result.descriptor = (try? PayloadDescriptor(video, parsing: payload)) ?? .none
        result.pictures = result.descriptor.numbers
        // The frame number is at a fixed place, so that it is the same whether or not the rest can be parsed.
        if let range = passedOn.dependencyDescriptor {
            let offset = range.lowerBound + DependencyDescriptor.frameNumberOffset
            result.pictures.frameNumber = range.count >= 3 ? try? packet.uint16(at: offset) : nil
        }
        return result
    }
}

extension WireError.Field {
    /// A payload type that was not negotiated for the m-line.
    package static var rtpPayloadType: Self { .init("rtp.payloadType") }
}
