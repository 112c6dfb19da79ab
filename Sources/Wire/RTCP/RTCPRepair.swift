/// Requests that packets be sent again (NACK).
/// - Source: RFC 4585 §6.2.1 (generic NACK).
package struct NegativeAcknowledgement: Equatable, Sendable {
    static let format: UInt8 = 1
    /// Most sequence numbers read from or written to one packet; the rest is ignored.
    ///
    /// Chrome keeps at most 1,000.
    package static let maximumLost = 1_024

    /// The receiver that requests.
    package var senderSSRC: UInt32
    /// The stream with the losses.
    package var mediaSSRC: UInt32
    /// The missing sequence numbers, in the order of the packet.
    package var lost: [UInt16]

    package init(senderSSRC: UInt32, mediaSSRC: UInt32, lost: [UInt16]) {
        self.senderSSRC = senderSSRC
        self.mediaSSRC = mediaSSRC
        self.lost = lost
    }

    init(_ body: Span<UInt8>) throws(WireError) {
        senderSSRC = try body.uint32(at: 0)
        mediaSSRC = try body.uint32(at: 4)
        lost = []
        var offset = 8
        while offset < body.count, lost.count < Self.maximumLost {
            let first = try body.uint16(at: offset)
            var mask = try body.uint16(at: offset &+ 2)
            lost.append(first)
            var next = first &+ 1
            while mask != 0, lost.count < Self.maximumLost {
                if mask & 1 != 0 { lost.append(next) }
                mask >>= 1
                next &+= 1
            }
            offset &+= 4
        }
    }

    /// Appends the RTCP packet, with at most `maximumLost` numbers; nearby ones share an entry.
    package func append(to bytes: inout [UInt8]) {
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.transportSpecificFeedback, countOrFormat: Self.format
        ) { bytes in
            bytes.append(bigEndian: senderSSRC)
            bytes.append(bigEndian: mediaSSRC)
            var pending: (first: UInt16, mask: UInt16)?
            for number in lost.prefix(Self.maximumLost) {
                if let (first, mask) = pending {
                    let distance = number &- first
                    if distance == 0 { continue }
                    if distance <= 16 {
                        pending = (first, mask | 1 << (distance &- 1))
                        continue
                    }
                    bytes.append(bigEndian: first)
                    bytes.append(bigEndian: mask)
                }
                pending = (number, 0)
            }
            guard let (first, mask) = pending else { return }
            bytes.append(bigEndian: first)
            bytes.append(bigEndian: mask)
        }
    }
}

/// Requests a picture that can be decoded without earlier ones (PLI).
/// - Source: RFC 4585 §6.3.1.
package struct PictureLossIndication: Equatable, Sendable {
    static let format: UInt8 = 1

    /// The receiver that requests.
    package var senderSSRC: UInt32
    /// The video stream.
    package var mediaSSRC: UInt32

    package init(senderSSRC: UInt32, mediaSSRC: UInt32) {
        self.senderSSRC = senderSSRC
        self.mediaSSRC = mediaSSRC
    }

    init(_ body: Span<UInt8>) throws(WireError) {
        senderSSRC = try body.uint32(at: 0)
        mediaSSRC = try body.uint32(at: 4)
    }

    /// Appends the RTCP packet.
    package func append(to bytes: inout [UInt8]) {
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.payloadSpecificFeedback, countOrFormat: Self.format
        ) { bytes in
            bytes.append(bigEndian: senderSSRC)
            bytes.append(bigEndian: mediaSSRC)
        }
    }
}

/// Requests a key frame (FIR); a repeated request has the same sequence number.
/// - Source: RFC 5104 §4.3.1.
package struct FullIntraRequest: Equatable, Sendable {
    /// A request to one sender.
    package struct Entry: Equatable, Sendable {
        /// The video stream.
        package var ssrc: UInt32
        /// Counts requests to this sender; a request that is repeated in case it was lost keeps its number.
        package var sequenceNumber: UInt8

        package init(ssrc: UInt32, sequenceNumber: UInt8) {
            self.ssrc = ssrc
            self.sequenceNumber = sequenceNumber
        }
    }

    static let format: UInt8 = 4
    /// Most entries read from or written to one packet; the rest is ignored.
    package static let maximumEntries = 64

    /// The receiver that requests.
    package var senderSSRC: UInt32
    /// The senders from which key frames are requested; at most `maximumEntries` are sent.
    package var entries: [Entry]

    package init(senderSSRC: UInt32, entries: [Entry]) {
        self.senderSSRC = senderSSRC
        self.entries = entries
    }

    init(_ body: Span<UInt8>) throws(WireError) {
        senderSSRC = try body.uint32(at: 0)
        // The media source of the common header is unused (RFC 5104 §4.3.1.2).
        _ = try body.uint32(at: 4)
        entries = []
        var offset = 8
        while offset < body.count, entries.count < Self.maximumEntries {
            try body.require(offset &+ 8)
            entries.append(
                Entry(ssrc: try body.uint32(at: offset), sequenceNumber: try body.uint8(at: offset &+ 4)))
            offset &+= 8
        }
    }

    /// Appends the RTCP packet.
    package func append(to bytes: inout [UInt8]) {
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.payloadSpecificFeedback, countOrFormat: Self.format
        ) { bytes in
            bytes.append(bigEndian: senderSSRC)
            bytes.append(bigEndian: UInt32(0))
            for entry in entries.prefix(Self.maximumEntries) {
                bytes.append(bigEndian: entry.ssrc)
                bytes.append(bigEndian: UInt32(entry.sequenceNumber) << 24)
            }
        }
    }
}
