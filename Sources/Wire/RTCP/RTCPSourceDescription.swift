/// Describes sources; WebRTC uses only canonical names.
/// - Source: RFC 3550 §6.5.
package struct SourceDescription: Equatable, Sendable {
    /// One property of a source.
    package struct Item: Equatable, Sendable {
        /// 1 is CNAME.
        package var type: UInt8
        /// At most 255 bytes of UTF-8.
        package var text: String

        package init(type: UInt8, text: String) {
            self.type = type
            self.text = text
        }
    }

    /// The properties of one source.
    package struct Chunk: Equatable, Sendable {
        /// The source.
        package var ssrc: UInt32
        /// Must include a CNAME (RFC 3550 §6.5.1).
        package var items: [Item]

        package init(ssrc: UInt32, items: [Item]) {
            self.ssrc = ssrc
            self.items = items
        }

        /// A chunk with only a CNAME, which is all that WebRTC sends.
        package init(ssrc: UInt32, canonicalName: String) {
            self.init(ssrc: ssrc, items: [Item(type: 1, text: canonicalName)])
        }

        /// The CNAME, which sources in lip sync have in common.
        package var canonicalName: String? { items.first { $0.type == 1 }?.text }
    }

    /// One for each source; at most 31 are sent.
    package var chunks: [Chunk]
    /// Most items read from one packet; the rest is ignored.
    private static let maximumItems = 64

    package init(chunks: [Chunk]) {
        self.chunks = chunks
    }

    init(_ body: Span<UInt8>, count: Int) throws(WireError) {
        chunks = []
        var offset = 0
        var items = 0
        for _ in 0..<count {
            var chunk = Chunk(ssrc: try body.uint32(at: offset), items: [])
            offset &+= 4
            while true {
                let type = try body.uint8(at: offset)
                guard type != 0 else { break }
                let length = try Int(body.uint8(at: offset &+ 1))
                let text = try body.bytes((offset &+ 2)..<(offset &+ 2 &+ length))
                offset &+= 2 &+ length
                items &+= 1
                guard items <= Self.maximumItems else { continue }
                chunk.items.append(Item(type: type, text: String(decoding: text, as: UTF8.self)))
            }
            // The items end with one to four zero bytes, up to the next word boundary.
            offset = (offset &+ 4) & ~3
            try body.require(offset)
            chunks.append(chunk)
        }
    }

    /// Appends the RTCP packet; the text of items is cut to 255 bytes.
    package func append(to bytes: inout [UInt8]) {
        let sent = chunks.prefix(31)
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.sourceDescription,
            countOrFormat: UInt8(truncatingIfNeeded: sent.count)
        ) { bytes in
            for chunk in sent {
                let start = bytes.count
                bytes.append(bigEndian: chunk.ssrc)
                for item in chunk.items {
                    let text = item.text.utf8.prefix(255)
                    bytes.append(item.type)
                    bytes.append(UInt8(truncatingIfNeeded: text.count))
                    bytes.append(contentsOf: text)
                }
                repeat { bytes.append(0) } while (bytes.count &- start) & 3 != 0
            }
        }
    }
}

/// Announces that sources leave (BYE).
/// - Source: RFC 3550 §6.6.
package struct Goodbye: Equatable, Sendable {
    /// The sources that leave; at most 31 are sent.
    package var ssrcs: [UInt32]
    /// Free text; at most 255 bytes of UTF-8 are sent.
    package var reason: String?

    package init(ssrcs: [UInt32], reason: String? = nil) {
        self.ssrcs = ssrcs
        self.reason = reason
    }

    init(_ body: Span<UInt8>, count: Int) throws(WireError) {
        ssrcs = []
        for index in 0..<count { ssrcs.append(try body.uint32(at: index &* 4)) }
        let offset = count &* 4
        guard body.count > offset else { return }
        let length = try Int(body.uint8(at: offset))
        let text = try body.bytes((offset &+ 1)..<(offset &+ 1 &+ length))
        reason = String(decoding: text, as: UTF8.self)
    }

    /// Appends the RTCP packet.
    package func append(to bytes: inout [UInt8]) {
        let sent = ssrcs.prefix(31)
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.goodbye, countOrFormat: UInt8(truncatingIfNeeded: sent.count)
        ) { bytes in
            for ssrc in sent { bytes.append(bigEndian: ssrc) }
            guard let text = reason?.utf8.prefix(255) else { return }
            bytes.append(UInt8(truncatingIfNeeded: text.count))
            bytes.append(contentsOf: text)
        }
    }
}
