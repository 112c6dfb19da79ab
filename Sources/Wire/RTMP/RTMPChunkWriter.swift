/// Splits messages into chunks.
///
/// Every message begins with a full header. Compression would save little: a server sends few messages to a
/// publisher, and a publisher's pictures are long.
/// - Source: Adobe, RTMP 1.0 (2012), §5.3.1.
package struct RTMPChunkWriter: Sendable {
    /// Bytes of a chunk's payload; the peer must know the value.
    package private(set) var chunkSize = 128

    package init() {}

    /// Announces a new chunk size, and uses it from now on.
    package mutating func setChunkSize(_ size: UInt32, in bytes: inout [UInt8]) {
        append(RTMPMessage(.setChunkSize, number: size), to: &bytes)
        chunkSize = max(Int(size), 1)
    }

    /// Appends a message as chunks.
    /// - Parameter message: with a payload of less than 16 MiB.
    package func append(_ message: RTMPMessage, to bytes: inout [UInt8]) {
        let isControl = message.kind.rawValue <= RTMPMessage.Kind.peerBandwidth.rawValue
        let id: UInt8 = isControl ? 2 : message.stream == 0 ? 3 : 5
        let isExtended = message.timestamp >= 0xFF_FFFF
        bytes.append(id)
        append(uint24: isExtended ? 0xFF_FFFF : message.timestamp, to: &bytes)
        append(uint24: UInt32(truncatingIfNeeded: message.payload.count), to: &bytes)
        bytes.append(message.kind.rawValue)
        bytes.append(bigEndian: message.stream.byteSwapped)
        if isExtended { bytes.append(bigEndian: message.timestamp) }
        var offset = 0
        repeat {
            if offset > 0 {
                bytes.append(0xC0 | id)
                if isExtended { bytes.append(bigEndian: message.timestamp) }
            }
            let end = min(offset + chunkSize, message.payload.count)
            bytes += message.payload[offset..<end]
            offset = end
        } while offset < message.payload.count
    }

    private func append(uint24 value: UInt32, to bytes: inout [UInt8]) {
        bytes.append(UInt8(truncatingIfNeeded: value >> 16))
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: value))
    }
}
