/// The value of a header extension element.
package protocol RTPExtensionValue: Equatable, Sendable {
    /// Parses the value; surplus bytes are ignored.
    /// - Throws: `.truncated` if there are fewer bytes than the value needs.
    init(parsing bytes: Span<UInt8>) throws(WireError)
    /// Length in bytes, without the element's header.
    var encodedLength: Int { get }
    /// Writes `encodedLength` bytes.
    /// - Throws: `.noRoom` if they do not fit.
    func write(into packet: inout MutableSpan<UInt8>, at offset: Int) throws(WireError)
}

extension RTPHeader {
    /// The value of element `id`; `nil` if it is absent or malformed.
    package func extensionValue<Value: RTPExtensionValue>(
        _ type: Value.Type, id: UInt8?, in packet: Span<UInt8>
    ) -> Value? {
        guard let id, let range = extensionRange(id: id, in: packet) else { return nil }
        return try? Value(parsing: packet.extracting(range))
    }
}

/// How a picture must be rotated before display (coordination of video orientation).
/// - Source: 3GPP TS 26.114 §7.4.5.
package struct VideoOrientation: RTPExtensionValue {
    /// Clockwise, as seen by the viewer; the raw value is that on the wire.
    package enum Rotation: UInt8, Sendable {
        case none, clockwise90, clockwise180, clockwise270
    }

    /// Whether the camera faces away from its user.
    package var isBackCamera: Bool
    /// Whether the picture is mirrored horizontally.
    package var isFlipped: Bool
    /// The rotation that the receiver applies before display.
    package var rotation: Rotation

    package init(isBackCamera: Bool = false, isFlipped: Bool = false, rotation: Rotation) {
        self.isBackCamera = isBackCamera
        self.isFlipped = isFlipped
        self.rotation = rotation
    }

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        let byte = try bytes.uint8(at: 0)
        isBackCamera = byte & 0x08 != 0
        isFlipped = byte & 0x04 != 0
        rotation = Rotation(rawValue: byte & 0x03) ?? .none
    }

    package var encodedLength: Int { 1 }

    package func write(into packet: inout MutableSpan<UInt8>, at offset: Int) throws(WireError) {
        let byte = (isBackCamera ? 0x08 : 0) | (isFlipped ? 0x04 : 0) | rotation.rawValue
        try packet.store(byte, at: offset)
    }
}

/// The sender's counter of everything sent on one transport, echoed in transport-wide feedback.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §2.
package struct TransportSequenceNumber: RTPExtensionValue {
    /// Wraps.
    package var value: UInt16

    package init(_ value: UInt16) {
        self.value = value
    }

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        value = try bytes.uint16(at: 0)
    }

    package var encodedLength: Int { 2 }

    package func write(into packet: inout MutableSpan<UInt8>, at offset: Int) throws(WireError) {
        try packet.store(value, at: offset)
    }
}

/// The range of the delay from capture to rendering that a sender requests.
///
/// (0, 0) requests immediate rendering.
/// - Source: webrtc.org/experiments/rtp-hdrext/playout-delay.
package struct PlayoutDelay: RTPExtensionValue {
    /// In units of 10 ms, 12 bits.
    package var minimum: UInt16
    /// In units of 10 ms, 12 bits.
    package var maximum: UInt16

    /// In units of 10 ms; larger values are limited to 12 bits.
    package init(minimum: UInt16, maximum: UInt16) {
        self.minimum = min(minimum, 0xFFF)
        self.maximum = min(maximum, 0xFFF)
    }

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        let value = try bytes.uint24(at: 0)
        minimum = UInt16(truncatingIfNeeded: value >> 12)
        maximum = UInt16(truncatingIfNeeded: value & 0xFFF)
    }

    package var encodedLength: Int { 3 }

    package func write(into packet: inout MutableSpan<UInt8>, at offset: Int) throws(WireError) {
        try packet.store(UInt8(truncatingIfNeeded: minimum >> 4), at: offset)
        try packet.store(minimum << 12 | maximum & 0xFFF, at: offset &+ 1)
    }
}
