import Wire

/// Creates RTP packets from the payloads of pictures.
package struct PicturePacketizer: Sendable {
    /// A dynamic payload type (RFC 3551 §6); viewers get the one that they negotiated.
    package static let payloadType: UInt8 = 96
    /// Longest payload of a packet, in bytes.
    static let maximumPayload = 1_136

    private let ssrc: UInt32
    private var sequenceNumber: UInt16

    /// - Parameter seed: random, different for each publication: determines SSRC and first sequence number.
    init(seed: UInt64) {
        ssrc = UInt32(truncatingIfNeeded: seed) | 1
        sequenceNumber = UInt16(truncatingIfNeeded: seed >> 32) & 0x7FFF
    }

    /// Creates the packets of one picture; the last has the marker bit.
    /// - Parameter timestamp: in ticks of 90 kHz.
    mutating func packets(of payloads: [[UInt8]], timestamp: UInt32) -> [[UInt8]] {
        payloads.enumerated().map { index, payload in
            packet(payload, timestamp: timestamp, marker: index == payloads.count - 1)
        }
    }

    private mutating func packet(_ payload: [UInt8], timestamp: UInt32, marker: Bool) -> [UInt8] {
        defer { sequenceNumber &+= 1 }
        var bytes: [UInt8] = [0x80, (marker ? 0x80 : 0) | Self.payloadType]
        bytes.reserveCapacity(RTPHeader.fixedLength + payload.count)
        bytes.append(bigEndian: sequenceNumber)
        bytes.append(bigEndian: timestamp)
        bytes.append(bigEndian: ssrc)
        bytes += payload
        return bytes
    }
}
