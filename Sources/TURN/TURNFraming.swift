import Wire

/// A channel's number, which stands for a peer.
///
/// - Source: RFC 8656 §12; RFC 5766 §11, by which older clients, coturn's among them, take numbers beyond 0x4FFF.
///   Nothing else comes to these ports that could be taken for those.
struct ChannelNumber: Hashable, Sendable {
    let value: UInt16

    /// - Returns: nil for what is reserved.
    init?(_ value: UInt16) {
        guard (0x4000...0x7FFE).contains(value) else { return nil }
        self.value = value
    }
}

/// What a relay's client and its relay tell each other in, without STUN around it.
///
/// - Source: RFC 8656 §12.4, §12.5.
enum ChannelData {
    /// Bytes of number and length.
    static let headerLength = 4

    /// - Returns: nil for what is no channel's data.
    static func read(_ bytes: Span<UInt8>) -> (channel: ChannelNumber, data: Range<Int>)? {
        guard let number = try? bytes.uint16(at: 0), let channel = ChannelNumber(number),
            let length = try? bytes.uint16(at: 2)
        else { return nil }
        // Behind it there may be padding.
        let range = headerLength..<(headerLength + Int(length))
        return range.upperBound <= bytes.count ? (channel, range) : nil
    }

    /// - Parameter isPadded: over a stream each is padded to four bytes.
    static func append(
        _ data: Span<UInt8>, of channel: ChannelNumber, isPadded: Bool, to output: inout [UInt8]
    ) {
        output.append(bigEndian: channel.value)
        output.append(bigEndian: UInt16(truncatingIfNeeded: data.count))
        output.append(contentsOf: data)
        if isPadded { output.append(contentsOf: repeatElement(0, count: -data.count & 3)) }
    }
}

/// Cuts a TCP or TLS stream into STUN messages and channels' data, which tell their lengths themselves.
///
/// - Source: RFC 8656 §12.5; RFC 8489 §6.2.2.
package struct TURNFrameReader: Sendable {
    /// No path of WebRTC has longer datagrams; with the head of an indication around them.
    package static let longest = 2_048

    private var pending: [UInt8] = []

    package init() {}

    /// Takes the next piece of the stream.
    ///
    /// - Parameter visit: gets each message that is complete now.
    /// - Throws: for what is neither, or too long. What follows cannot be told apart from noise: the stream must end.
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
        // Byte by byte would take microseconds for each packet; the buffer is used within the call alone.
        unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }
}
