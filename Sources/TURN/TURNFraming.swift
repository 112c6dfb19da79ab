import Wire

/// The number of a channel, which stands for a peer.
///
/// - Source: RFC 8656 §12. Numbers above 0x4FFF are valid by RFC 5766 §11 only, but older clients use them, and so
///   does coturn's. They are accepted because nothing else that arrives at these ports begins with such bytes.
struct ChannelNumber: Hashable, Sendable {
    let value: UInt16

    /// - Returns: nil if the value is reserved.
    init?(_ value: UInt16) {
        guard (0x4000...0x7FFE).contains(value) else { return nil }
        self.value = value
    }
}

/// Datagrams between a client and its relay, with a header of four bytes instead of a STUN message.
///
/// - Source: RFC 8656 §12.4, §12.5.
enum ChannelData {
    /// Bytes of the header: the channel's number and the datagram's length.
    static let headerLength = 4

    /// Finds channel and datagram in a message.
    ///
    /// - Returns: nil if it is not ChannelData.
    static func read(_ bytes: Span<UInt8>) -> (channel: ChannelNumber, data: Range<Int>)? {
        guard let number = try? bytes.uint16(at: 0), let channel = ChannelNumber(number),
            let length = try? bytes.uint16(at: 2)
        else { return nil }
        // The message may be longer, because of padding.
        let range = headerLength..<(headerLength + Int(length))
        return range.upperBound <= bytes.count ? (channel, range) : nil
    }

    /// Appends a datagram with its header.
    ///
    /// - Parameter isPadded: pads to a multiple of four bytes, as a stream requires.
    static func append(
        _ data: Span<UInt8>, of channel: ChannelNumber, isPadded: Bool, to output: inout [UInt8]
    ) {
        output.append(bigEndian: channel.value)
        output.append(bigEndian: UInt16(truncatingIfNeeded: data.count))
        output.append(contentsOf: data)
        if isPadded { output.append(contentsOf: repeatElement(0, count: -data.count & 3)) }
    }
}

/// Cuts a TCP or TLS stream into STUN messages and ChannelData, both of which contain their length.
///
/// - Source: RFC 8656 §12.5; RFC 8489 §6.2.2.
package struct TURNFrameReader: Sendable {
    /// Most bytes of a message: WebRTC's paths have no longer datagrams, even with the header of an indication.
    package static let longest = 2_048

    /// The beginning of a message whose rest has not arrived.
    private var pending: [UInt8] = []

    /// A reader at the beginning of a stream.
    package init() {}

    /// Reads the next bytes of the stream.
    ///
    /// - Parameter visit: called with each complete message, in order.
    /// - Throws: if a message is of neither kind, or too long. The beginning of the next one is then unknown, so the
    ///   stream must be closed.
    package mutating func read(
        _ bytes: Span<UInt8>, _ visit: (Span<UInt8>) -> Void
    ) throws(WireError) {
        pending.append(contentsOf: bytes)
        var start = 0
        defer { pending.removeFirst(start) }
        while pending.count - start >= ChannelData.headerLength {
            let span = pending.span
            let length = try Self.length(of: span.extracting(start..<pending.count))
            guard pending.count - start >= length else { return }
            visit(span.extracting(start..<(start + length)))
            start += length
        }
    }

    /// Length of the message at the beginning, with padding.
    private static func length(of bytes: Span<UInt8>) throws(WireError) -> Int {
        let first = try bytes.uint16(at: 0)
        let rest = Int(try bytes.uint16(at: 2))
        let length: Int
        if ChannelNumber(first) != nil {
            length = ChannelData.headerLength + (rest + 3) & ~3
        } else {
            guard first >> 14 == 0, rest % 4 == 0 else { throw .invalid(.stunType) }
            length = STUNMessage.headerLength + rest
        }
        guard length <= longest else { throw .invalid(.frameLength) }
        return length
    }
}

extension [UInt8] {
    mutating func append(contentsOf span: Span<UInt8>) {
        // Appending byte by byte would take microseconds per packet. The pointer is not used after the call.
        unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }
}
