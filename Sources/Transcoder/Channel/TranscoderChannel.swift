import Wire

/// How messages lie in what crosses the socket between the server and its transcoder.
///
/// A message is its length in four bytes, its kind in one, and its body. Messages follow each other without regard to
/// datagrams: a small one shares its datagram with others, a picture takes several. The socket loses and reorders
/// nothing (SOCK_SEQPACKET).
package enum TranscoderChannel {
    /// Of the messages; told first by both ends, which part when they differ.
    package static let version: UInt16 = 1
    /// Bytes of one message, at most: what ends a connection before it fills memory.
    package static let messageLimit = 4 << 20
    /// Bytes sent at a time.
    package static let datagramLimit = 32 << 10
    /// Room in the kernel, each way.
    package static let socketBuffer = 1 << 20

    static let lengthSize = 4

    /// Appends a message to those that wait.
    package static func append(_ kind: UInt8, _ body: [UInt8], to bytes: inout [UInt8]) {
        let length = UInt32(clamping: body.count + 1)
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: length >> UInt32(shift))) }
        bytes.append(kind)
        bytes += body
    }

    /// Appends a message that is written where it shall lie: nothing is allocated as long as there is room.
    static func append(
        _ kind: UInt8, to bytes: inout [UInt8], _ write: (inout MessageWriter) -> Void
    ) {
        let start = bytes.count
        var writer = MessageWriter()
        writer.exchange(&bytes)
        writer.write(UInt32(0))
        writer.write(kind)
        write(&writer)
        writer.exchange(&bytes)
        let length = UInt32(clamping: bytes.count - start - lengthSize)
        for (index, shift) in [24, 16, 8, 0].enumerated() {
            bytes[start + index] = UInt8(truncatingIfNeeded: length >> UInt32(shift))
        }
    }
}

/// Puts messages together again out of what the socket brings.
package struct MessageAssembler {
    private var bytes: [UInt8] = []

    package init() {}

    /// Takes in what came, and hands out the messages that are complete.
    /// - Throws: for a message that is empty or too long; nothing that follows can be understood.
    package mutating func receive(
        _ piece: some Collection<UInt8>, _ take: (UInt8, MessageReader) -> Void
    ) throws(WireError) {
        bytes += piece
        var place = 0
        while bytes.count - place >= TranscoderChannel.lengthSize {
            let length = bytes[place..<(place + 4)].reduce(0) { $0 << 8 | Int($1) }
            guard length >= 1, length <= TranscoderChannel.messageLimit else {
                throw .invalid(.transcoderMessage)
            }
            let start = place + TranscoderChannel.lengthSize
            guard bytes.count - start >= length else { break }
            take(bytes[start], MessageReader(bytes, (start + 1)..<(start + length)))
            place = start + length
        }
        bytes.removeFirst(place)
    }
}

extension WireError.Field {
    /// A kind, length or value that this version does not send.
    package static var transcoderMessage: Self { .init("transcoder.message") }
}
