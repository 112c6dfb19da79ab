import Testing
import TestSupport
import Wire

@Suite struct RTPCaptures {
    private static let names = VideoCapture.all.map(\.name)

    /// A textual element, such as MID or RID; nil where there is none.
    private func text(_ id: UInt8?, of header: RTPHeader, in packet: [UInt8]) -> String? {
        id.flatMap { header.extensionRange(id: $0, in: packet.span) }
            .map { String(decoding: packet[$0], as: UTF8.self) }
    }

    @Test(arguments: names) func `are parsed in full`(name: String) throws {
        let packets = try PacketCapture("RTP/\(name).rtp.hex").packets
        #expect(packets.count >= 6)
        for packet in packets {
            let header = try RTPHeader(parsing: packet.span)
            let length = try RTPHeader.length(of: packet.span)
            #expect(header.payloadRange.lowerBound == length)
            #expect(header.payloadRange.upperBound + header.paddingLength == packet.count)
        }
    }

    @Test(arguments: names.filter { !$0.hasPrefix("gstreamer") && !$0.hasPrefix("ffmpeg") })
    func `of browsers carry MID and a transport-wide count`(name: String) throws {
        let capture = try PacketCapture("RTP/\(name).rtp.hex")
        let mid = capture.extensionID(RTPExtensionURI.mid.rawValue)
        let count = capture.extensionID(RTPExtensionURI.transportSequenceNumber.rawValue)
        var mids: Set<String> = []
        var counts: [UInt16] = []
        for packet in capture.packets {
            let header = try RTPHeader(parsing: packet.span)
            if let text = text(mid, of: header, in: packet) { mids.insert(text) }
            let value = header.extensionValue(TransportSequenceNumber.self, id: count, in: packet.span)
            if let value { counts.append(value.value) }
        }
        #expect(mids.isSubset(of: ["0", "1"]) && mids.contains("1"))
        #expect(counts.count > 5)
        // The count runs over all streams; the capture leaves some of them out.
        #expect(zip(counts, counts.dropFirst()).allSatisfy { SequenceNumber.isNewer($1, than: $0) })
    }

    @Test(arguments: ["chromium-vp8-simulcast", "firefox-vp8-simulcast"])
    func `of simulcast carry RIDs`(name: String) throws {
        let capture = try PacketCapture("RTP/\(name).rtp.hex")
        let id = capture.extensionID(RTPExtensionURI.rtpStreamID.rawValue)
        let rids = try capture.packets.compactMap { packet in
            text(id, of: try RTPHeader(parsing: packet.span), in: packet)
        }
        #expect(Set(rids) == ["q", "f"])
    }

    @Test(arguments: names) func `keep their extensions when the header is written anew`(name: String) throws
    {
        for packet in try PacketCapture("RTP/\(name).rtp.hex").packets {
            let header = try RTPHeader(parsing: packet.span)
            var copy = [UInt8](repeating: 0, count: 1_500)
            var span = copy.mutableSpan
            var writer = try RTPHeaderWriter(
                marker: header.marker, payloadType: 127, sequenceNumber: 1, timestamp: 2, ssrc: 3, into: &span
            )
            var expected: [[UInt8]] = []
            var cursor = RTPExtensionCursor(header)
            while let element = cursor.next(in: packet.span) {
                expected.append([element.id] + packet[element.range])
                try writer.append(id: element.id, copying: packet.span, element.range, into: &span)
            }
            let length = try writer.finish(into: &span)
            let again = try RTPHeader(parsing: copy.span.extracting(first: length))
            var found: [[UInt8]] = []
            cursor = RTPExtensionCursor(again)
            while let element = cursor.next(in: copy.span) {
                found.append([element.id] + copy[element.range])
            }
            #expect(found == expected)
            #expect(again.payloadRange.lowerBound == length)
        }
    }

    /// Before media, browsers probe with padding on the retransmission stream.
    @Test func `open with probes that carry nothing`() throws {
        let packets = try PacketCapture("RTP/chromium-vp8-l1t3.rtp.hex").packets.map { bytes in
            (bytes, try RTPHeader(parsing: bytes.span))
        }
        let probe = try #require(packets.first { $0.1.payloadType == 97 })
        #expect(probe.1.payloadRange.isEmpty)
        #expect(probe.1.paddingLength == 255)
        let original = try Retransmission.original(
            of: probe.1, in: probe.0.span, payloadType: 96, ssrc: 1)
        #expect(original == nil)
    }

    @Test func `of Firefox hold a retransmission of the packet before`() throws {
        let capture = try PacketCapture("RTP/firefox-av1-l1t1.rtp.hex")
        let packets = try capture.packets.map { ($0, try RTPHeader(parsing: $0.span)) }
        let (bytes, header) = try #require(
            packets.first { $0.1.payloadType == 100 && !$0.1.payloadRange.isEmpty })
        let media = try #require(packets.first { $0.1.payloadType == 99 })
        let original = try #require(
            try Retransmission.original(of: header, in: bytes.span, payloadType: 99, ssrc: media.1.ssrc))
        #expect(original.sequenceNumber == media.1.sequenceNumber)
        #expect(original.timestamp == media.1.timestamp)
        #expect(bytes[original.payloadRange] == media.0[media.1.payloadRange])
    }

    @Test func `of speech tell its level and 20 ms of Opus`() throws {
        let capture = try PacketCapture("RTP/chromium-vp9-l2t2.rtp.hex")
        let id = capture.extensionID(RTPExtensionURI.audioLevel.rawValue)
        let packet = try #require(capture.packets.first { $0[1] & 0x7F == 111 })
        let header = try RTPHeader(parsing: packet.span)
        #expect(header.extensionRange(id: try #require(id), in: packet.span)?.count == 1)
        let duration = try OpusPayload.duration(packet.span.extracting(header.payloadRange))
        #expect(duration == 960)
    }
}
