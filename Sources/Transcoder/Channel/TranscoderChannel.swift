import Wire

/// The framing of messages on the socket between the server and its transcoder.
///
/// A message consists of its length in four bytes, its kind in one byte, and its body. Message boundaries are
/// independent of datagrams: small messages share one, a picture spans several. The socket neither loses nor reorders
/// data (SOCK_SEQPACKET).
package enum TranscoderChannel {
    /// Version of the messages, which both ends send first; they disconnect when it differs.
    package static let version: UInt16 = 1
    /// Longest message, in bytes: a longer one ends the connection before it can fill memory.
    package static let messageLimit = 4 << 20
    /// Longest datagram, in bytes.
    package static let datagramLimit = 32 << 10
    /// Size of the kernel's buffer in each direction, in bytes.
    package static let socketBuffer = 1 << 20

    /// Bytes of the length before each message; it counts the kind and the body.
    static let lengthSize = 4

    /// Appends a message to bytes that wait to be sent.
    package static func append(_ kind: UInt8, _ body: [UInt8], to bytes: inout [UInt8]) {
        let length = UInt32(clamping: body.count + 1)
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: length >> UInt32(shift))) }
        bytes.append(kind)
        bytes += body
    }

    /// Appends a message that is written in place: no allocation while `bytes` has capacity.
    ///
    /// Used for media packets, by far the most frequent messages.
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
        // The length is known only now, and replaces the zeros.
        let length = UInt32(clamping: bytes.count - start - lengthSize)
        for (index, shift) in [24, 16, 8, 0].enumerated() {
            bytes[start + index] = UInt8(truncatingIfNeeded: length >> UInt32(shift))
        }
    }
}

/// Reassembles messages from the datagrams of the socket.
package struct MessageAssembler {
    private var bytes: [UInt8] = []

    package init() {}

    /// Appends received bytes, and passes complete messages to `take`.
    /// - Throws: for a message that is empty or too long; what follows cannot be parsed then.
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
    /// A kind, length or value that this version does not use.
    package static var transcoderMessage: Self { .init("transcoder.message") }
}
