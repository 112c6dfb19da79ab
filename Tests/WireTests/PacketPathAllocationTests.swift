import MallocCounter
import Testing
import TestSupport
import Wire

@Suite struct PacketPathAllocations {
    /// Reads a packet and writes it as it leaves for a viewer: header, extension, payload descriptor.
    private func forward(
        _ packet: Span<UInt8>, _ codec: VideoCodec, into span: inout MutableSpan<UInt8>
    ) throws(WireError) -> Int {
        let header = try RTPHeader(parsing: packet)
        let payload = packet.extracting(header.payloadRange)
        let info = try VideoPayload.describe(codec, payload: payload, marker: header.marker)
        var writer = try RTPHeaderWriter(
            marker: info.endsFrame, payloadType: 100, sequenceNumber: header.sequenceNumber &+ 5,
            timestamp: header.timestamp, ssrc: 1, into: &span)
        if let range = header.extensionRange(id: 3, in: packet) {
            try writer.append(id: 3, copying: packet, range, into: &span)
        }
        try writer.append(id: 5, PlayoutDelay(minimum: 0, maximum: 0), into: &span)
        try writer.append(id: 20, 77, length: 2, into: &span)
        let end = try writer.finish(into: &span)
        switch codec {
        case .vp8:
            var descriptor = try VP8Descriptor(parsing: payload)
            descriptor.pictureID = 9
            return end + (try descriptor.write(into: &span, at: end))
        case .vp9:
            let descriptor = try VP9Descriptor(parsing: payload)
            return end
                + (try descriptor.write(
                    pictureID: 9, tl0PictureIndex: 1, copying: payload, into: &span, at: end))
        case .h264, .av1, .hevc:
            return end
        }
    }

    @Test(
        .enabled(if: malloc_counter_is_on() != 0, "sanitizers count allocations themselves"),
        arguments: VideoCapture.all)
    func `are none between reading a packet and writing it`(capture: VideoCapture) throws {
        // A parameter set is unescaped into a buffer of its own, once a key frame.
        let packets = try capture.packets().filter { $0.info.resolution == nil || capture.codec != .h264 }
        var buffer = [UInt8](repeating: 0, count: 1_500)
        var span = buffer.mutableSpan
        var allocations: UInt64 = 0
        for (index, packet) in packets.enumerated() {
            let bytes = packet.bytes
            let before = malloc_counter_allocations()
            let length = try forward(bytes.span, capture.codec, into: &span)
            // The first packet pays for what the runtime sets up once.
            if index > 0 { allocations += malloc_counter_allocations() - before }
            #expect(length > RTPHeader.fixedLength)
        }
        #expect(allocations == 0)
    }
}
