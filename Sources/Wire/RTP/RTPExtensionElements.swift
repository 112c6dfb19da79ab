/// One element of a header extension.
package struct RTPExtensionElement: Equatable, Sendable {
    /// The id from `a=extmap`: 1 to 14 in the one-byte form, 1 to 255 in the two-byte form.
    package let id: UInt8
    /// The place of the value in the parsed packet; may be empty in the two-byte form.
    package let range: Range<Int>
}

/// Iterates over the elements of a header extension without allocating.
///
/// An element that exceeds the extension ends the iteration; those before it stay usable.
/// - Source: RFC 8285 §4.2 (one-byte form), §4.3 (two-byte form).
package struct RTPExtensionCursor: Sendable {
    private let form: RTPExtensionForm?
    private var position: Int
    private let end: Int

    /// Begins before the first element, or at the end if the form is unknown.
    package init(_ header: RTPHeader) {
        form = RTPExtensionForm(profile: header.extensionProfile)
        position = header.extensionRange.lowerBound
        end = header.extensionRange.upperBound
    }

    /// The next element, or `nil` at the end.
    /// - Parameter packet: the packet whose header created this cursor.
    package mutating func next(in packet: Span<UInt8>) -> RTPExtensionElement? {
        guard let form, end <= packet.count, position >= 0 else { return nil }
        while position < end {
            let first = packet[position]
            guard first != 0 else {
                position &+= 1
                continue
            }
            let element = form == .oneByte ? oneByteElement(first) : twoByteElement(first, in: packet)
            guard let element, element.range.upperBound <= end else { break }
            position = element.range.upperBound
            return element
        }
        position = end
        return nil
    }

    private func oneByteElement(_ first: UInt8) -> RTPExtensionElement? {
        let id = first >> 4
        // Id 0 with a length, and id 15, both end the extension (RFC 8285 §4.2).
        guard id != 0, id != 15 else { return nil }
        let start = position &+ 1
        return RTPExtensionElement(id: id, range: start..<(start &+ Int(first & 0x0F) &+ 1))
    }

    private func twoByteElement(_ id: UInt8, in packet: Span<UInt8>) -> RTPExtensionElement? {
        guard position &+ 1 < end else { return nil }
        let start = position &+ 2
        return RTPExtensionElement(id: id, range: start..<(start &+ Int(packet[position &+ 1])))
    }
}

/// How elements of a header extension are framed.
package enum RTPExtensionForm: Equatable, Sendable {
    /// Ids 1 to 14, values of 1 to 16 bytes.
    case oneByte
    /// Ids 1 to 255, values of 0 to 255 bytes.
    case twoByte

    /// Recognizes the form by the extension's first word; `nil` for another kind of extension.
    package init?(profile: UInt16) {
        switch profile {
        case 0xBEDE: self = .oneByte
        case 0x1000...0x100F: self = .twoByte
        default: return nil
        }
    }

    /// The extension's first word; in the two-byte form the low four bits ("appbits") are 0.
    package var profile: UInt16 {
        switch self {
        case .oneByte: 0xBEDE
        case .twoByte: 0x1000
        }
    }

    /// Bytes before each value.
    package var elementHeaderLength: Int { self == .oneByte ? 1 : 2 }
}

extension RTPHeader {
    /// The place of the value of element `id` in `packet`; the first one if there are several.
    package func extensionRange(id: UInt8, in packet: Span<UInt8>) -> Range<Int>? {
        guard id != 0 else { return nil }
        var cursor = RTPExtensionCursor(self)
        while let element = cursor.next(in: packet) {
            if element.id == id { return element.range }
        }
        return nil
    }
}
