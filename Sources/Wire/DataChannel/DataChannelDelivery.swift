/// How the messages of a channel are delivered: whether in order, and how often they are retransmitted.
/// - Source: RFC 8832 §5.1 (channel type and reliability parameter).
package struct DataChannelDelivery: Hashable, Sendable {
    /// What happens to a message that is lost (RFC 3758 §3.5).
    package enum Reliability: Hashable, Sendable {
        case reliable
        /// A message is dropped after this many retransmissions.
        case retransmissions(UInt32)
        /// A message is dropped this many milliseconds after it was sent.
        case lifetime(milliseconds: UInt32)
    }

    /// Whether messages arrive in the order of sending; then a lost one delays those after it.
    package var isOrdered: Bool
    /// Reliable or partially reliable.
    package var reliability: Reliability

    package init(isOrdered: Bool = true, reliability: Reliability = .reliable) {
        self.isOrdered = isOrdered
        self.reliability = reliability
    }

    private static let unorderedFlag: UInt8 = 0x80

    /// Decodes a channel type; the parameter is read only for partially reliable types.
    init(type: UInt8, parameter: UInt32) throws(WireError) {
        isOrdered = type & Self.unorderedFlag == 0
        switch type & ~Self.unorderedFlag {
        case 0: reliability = .reliable
        case 1: reliability = .retransmissions(parameter)
        case 2: reliability = .lifetime(milliseconds: parameter)
        default: throw .invalid(.dataChannelType)
        }
    }

    /// The channel type of DATA_CHANNEL_OPEN.
    var type: UInt8 {
        let kind: UInt8 =
            switch reliability {
            case .reliable: 0
            case .retransmissions: 1
            case .lifetime: 2
            }
        return isOrdered ? kind : kind | Self.unorderedFlag
    }

    /// Zero for reliable channels, whatever the peer sent: RFC 8832 §5.1 requires it to be ignored.
    var parameter: UInt32 {
        switch reliability {
        case .reliable: 0
        case .retransmissions(let count): count
        case .lifetime(let milliseconds): milliseconds
        }
    }
}
