/// How the messages of a channel are delivered: in what order, and how hard they are tried.
/// - Source: RFC 8832 §5.1 (channel type and reliability parameter).
package struct DataChannelDelivery: Hashable, Sendable {
    /// What becomes of a message that does not arrive at once (RFC 3758 §3.5).
    package enum Reliability: Hashable, Sendable {
        case reliable
        /// A message is given up after this many retransmissions.
        case retransmissions(UInt32)
        /// A message is given up this many milliseconds after it was sent.
        case lifetime(milliseconds: UInt32)
    }

    /// Whether messages arrive in the order of sending; a lost one then holds up the rest.
    package var isOrdered: Bool
    /// Reliable, or partially so.
    package var reliability: Reliability

    package init(isOrdered: Bool = true, reliability: Reliability = .reliable) {
        self.isOrdered = isOrdered
        self.reliability = reliability
    }

    private static let unorderedFlag: UInt8 = 0x80

    init(type: UInt8, parameter: UInt32) throws(WireError) {
        isOrdered = type & Self.unorderedFlag == 0
        switch type & ~Self.unorderedFlag {
        case 0: reliability = .reliable
        case 1: reliability = .retransmissions(parameter)
        case 2: reliability = .lifetime(milliseconds: parameter)
        default: throw .invalid(.dataChannelType)
        }
    }

    var type: UInt8 {
        let kind: UInt8 =
            switch reliability {
            case .reliable: 0
            case .retransmissions: 1
            case .lifetime: 2
            }
        return isOrdered ? kind : kind | Self.unorderedFlag
    }

    /// Zero for reliable channels, whatever the peer wrote there: RFC 8832 §5.1 wants it ignored.
    var parameter: UInt32 {
        switch reliability {
        case .reliable: 0
        case .retransmissions(let count): count
        case .lifetime(let milliseconds): milliseconds
        }
    }
}
