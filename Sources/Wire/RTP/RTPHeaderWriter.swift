/// Writes an RTP header with extensions, once per forwarded packet and viewer.
///
/// Allocates nothing and holds no buffer: each call receives the packet being written. Starts in the one-byte form
/// and converts to the two-byte form when an element requires it, so such an element should be written first.
/// - Source: RFC 3550 §5.1, RFC 8285 §4.2, §4.3. The two-byte form needs `a=extmap-allow-mixed` (RFC 8285 §6).
package struct RTPHeaderWriter: Sendable {
    /// Where the elements of the extension begin.
    private static let bodyOffset = RTPHeader.fixedLength + 4

    private var form = RTPExtensionForm.oneByte
    /// Version 2, and the P bit.
    private let flags: UInt8
    /// The end of the last element's value.
    package private(set) var position = Self.bodyOffset

    /// Writes the fixed header, without contributing sources.
    /// - Parameter hasPadding: whether the payload will end with padding, whose last byte counts it.
    package init(
        marker: Bool,
        hasPadding: Bool = false,
        payloadType: UInt8,
        sequenceNumber: UInt16,
        timestamp: UInt32,
        ssrc: UInt32,
        into packet: inout MutableSpan<UInt8>
    ) throws(WireError) {
        guard packet.count >= RTPHeader.fixedLength else { throw .noRoom }
        flags = hasPadding ? 0xA0 : 0x80
        try packet.store(flags, at: 0)
        try packet.store((marker ? 0x80 : 0) | payloadType & 0x7F, at: 1)
        try packet.store(sequenceNumber, at: 2)
        try packet.store(timestamp, at: 4)
        try packet.store(ssrc, at: 8)
    }

    /// Appends an element whose value is the low `length` bytes of `value`.
    /// - Parameter length: 1 to 8 bytes.
    package mutating func append(
        id: UInt8, _ value: UInt64, length: Int, into packet: inout MutableSpan<UInt8>
    ) throws(WireError) {
        guard length >= 1, length <= 8 else { throw .invalid(.rtpExtensionLength) }
        let start = try begin(id: id, length: length, in: &packet)
        var shift = length &* 8
        for index in 0..<length {
            shift &-= 8
            try packet.store(UInt8(truncatingIfNeeded: value &>> UInt64(shift)), at: start &+ index)
        }
        position = start &+ length
    }

    /// Appends an element whose value is copied from `source[range]`.
    package mutating func append(
        id: UInt8, copying source: Span<UInt8>, _ range: Range<Int>, into packet: inout MutableSpan<UInt8>
    ) throws(WireError) {
        try source.require(range)
        let start = try begin(id: id, length: range.count, in: &packet)
        try packet.store(source, range, at: start)
        position = start &+ range.count
    }

    /// Appends an element that encodes itself.
    package mutating func append(
        id: UInt8, _ value: some RTPExtensionValue, into packet: inout MutableSpan<UInt8>
    ) throws(WireError) {
        let start = try begin(id: id, length: value.encodedLength, in: &packet)
        try value.write(into: &packet, at: start)
        position = start &+ value.encodedLength
    }

    /// Pads the extension and writes its length; without elements there is no extension.
    /// - Returns: the length of the header, where the payload begins.
    package func finish(into packet: inout MutableSpan<UInt8>) throws(WireError) -> Int {
        guard position > Self.bodyOffset else { return RTPHeader.fixedLength }
        var end = position
        while end & 3 != 0 {
            try packet.store(UInt8(0), at: end)
            end &+= 1
        }
        try packet.store(flags | 0x10, at: 0)
        try packet.store(form.profile, at: RTPHeader.fixedLength)
        let words = UInt16(truncatingIfNeeded: (end &- Self.bodyOffset) / 4)
        try packet.store(words, at: RTPHeader.fixedLength &+ 2)
        return end
    }

    /// Writes an element's header and verifies that its value fits.
    /// - Returns: where the value must be written.
    private mutating func begin(
        id: UInt8, length: Int, in packet: inout MutableSpan<UInt8>
    ) throws(WireError) -> Int {
        guard id != 0 else { throw .invalid(.rtpExtensionID) }
        guard length <= 255 else { throw .invalid(.rtpExtensionLength) }
        if form == .oneByte, id > 14 || length == 0 || length > 16 { try widen(in: &packet) }
        let start = position &+ form.elementHeaderLength
        guard start &+ length <= packet.count else { throw .noRoom }
        switch form {
        case .oneByte:
            try packet.store(id << 4 | UInt8(truncatingIfNeeded: length &- 1), at: position)
        case .twoByte:
            try packet.store(id, at: position)
            try packet.store(UInt8(truncatingIfNeeded: length), at: position &+ 1)
        }
        return start
    }

    /// Converts the elements written so far to the two-byte form; each grows by one byte.
    ///
    /// Works in place and from the front: for each element, the bytes behind its header move up by one.
    private mutating func widen(in packet: inout MutableSpan<UInt8>) throws(WireError) {
        form = .twoByte
        var element = Self.bodyOffset
        while element < position {
            guard position < packet.count else { throw .noRoom }
            let first = packet[element]
            var index = position
            while index > element {
                packet[index] = packet[index &- 1]
                index &-= 1
            }
            position &+= 1
            let length = (first & 0x0F) &+ 1
            try packet.store(first >> 4, at: element)
            try packet.store(length, at: element &+ 1)
            element &+= 2 &+ Int(length)
        }
    }
}

extension WireError.Field {
    /// Id 0, which is padding (RFC 8285 §4.2).
    package static var rtpExtensionID: Self { .init("rtp.extension.id") }
    /// Longer than an element can be, or empty where a value is required.
    package static var rtpExtensionLength: Self { .init("rtp.extension.length") }
}
