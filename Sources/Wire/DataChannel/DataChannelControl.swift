/// A message of the Data Channel Establishment Protocol (DCEP), sent under payload protocol 50.
/// - Source: RFC 8832 §5.
package enum DataChannelControl: Equatable, Sendable {
    case open(DataChannelOpen)
    case acknowledge

    private static let acknowledgeType: UInt8 = 0x02
    private static let openType: UInt8 = 0x03

    /// Parses a message.
    /// - Throws: `.invalid` for a message type or channel type that RFC 8832 does not define, and for text that is
    ///   not UTF-8.
    package init(parsing message: Span<UInt8>) throws(WireError) {
        switch try message.uint8(at: 0) {
        case Self.acknowledgeType: self = .acknowledge
        case Self.openType: self = .open(try DataChannelOpen(message))
        default: throw .invalid(.dataChannelMessageType)
        }
    }

    /// The encoded message.
    package var bytes: [UInt8] {
        switch self {
        case .acknowledge: [Self.acknowledgeType]
        case .open(let open): [Self.openType] + open.body
        }
    }
}

/// The properties of a channel as its opener declares them: DATA_CHANNEL_OPEN.
/// - Source: RFC 8832 §5.1.
package struct DataChannelOpen: Equatable, Sendable {
    /// Channel type and reliability parameter.
    package var delivery: DataChannelDelivery
    /// RFC 8831 §6.4: 128 below normal, 256 normal, 512 high, 1024 extra high.
    package var priority: UInt16
    /// At most 65,535 bytes in UTF-8; a longer one is truncated when written.
    package var label: String
    /// A name from the WebSocket Subprotocol registry, or empty; limited like the label.
    package var subprotocol: String

    /// The priority that browsers send (RFC 8831 §6.4).
    package static let normalPriority: UInt16 = 256

    package init(
        label: String, subprotocol: String = "", delivery: DataChannelDelivery = DataChannelDelivery(),
        priority: UInt16 = normalPriority
    ) {
        self.delivery = delivery
        self.priority = priority
        self.label = label
        self.subprotocol = subprotocol
    }

    /// Ignores bytes after the protocol, as browsers do.
    init(_ message: Span<UInt8>) throws(WireError) {
        delivery = try DataChannelDelivery(type: message.uint8(at: 1), parameter: message.uint32(at: 4))
        priority = try message.uint16(at: 2)
        let labelStart = 12
        let labelEnd = try labelStart &+ Int(message.uint16(at: 8))
        let end = try labelEnd &+ Int(message.uint16(at: 10))
        let labelBytes = try message.bytes(labelStart..<labelEnd)
        let subprotocolBytes = try message.bytes(labelEnd..<end)
        guard let label = String(validating: labelBytes, as: UTF8.self) else {
            throw .invalid(.dataChannelLabel)
        }
        guard let subprotocol = String(validating: subprotocolBytes, as: UTF8.self) else {
            throw .invalid(.dataChannelProtocol)
        }
        self.label = label
        self.subprotocol = subprotocol
    }

    /// The encoded message after its type.
    fileprivate var body: [UInt8] {
        let (label, subprotocol) = (Self.limited(label), Self.limited(subprotocol))
        var bytes = [delivery.type]
        bytes.append(bigEndian: priority)
        bytes.append(bigEndian: delivery.parameter)
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: label.count))
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: subprotocol.count))
        return bytes + label + subprotocol
    }

    /// As many whole characters as fit into the 16-bit length.
    private static func limited(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            let encoded = UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            guard bytes.count &+ encoded.count <= Int(UInt16.max) else { break }
            bytes.append(contentsOf: encoded)
        }
        return bytes
    }
}

extension WireError.Field {
    /// Neither DATA_CHANNEL_OPEN nor DATA_CHANNEL_ACK.
    package static var dataChannelMessageType: Self { .init("datachannel.messageType") }
    /// A channel type that the registry of RFC 8832 §8.2.2 does not contain.
    package static var dataChannelType: Self { .init("datachannel.channelType") }
    /// A label that is not UTF-8.
    package static var dataChannelLabel: Self { .init("datachannel.label") }
    /// A subprotocol that is not UTF-8.
    package static var dataChannelProtocol: Self { .init("datachannel.protocol") }
}
