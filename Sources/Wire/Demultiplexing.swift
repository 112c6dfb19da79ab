/// The protocol of a datagram on a shared port, recognized by its first bytes.
///
/// - Source: RFC 7983 §7 (first byte), RFC 5761 §4 (RTCP beside RTP).
package enum DatagramKind: Equatable, Sendable {
    case stun, dtls, rtp, rtcp

    /// Recognizes a datagram.
    /// - Returns: nil for an empty datagram and for protocols not expected here (ZRTP, TURN channels, QUIC, noise).
    package init?(_ datagram: Span<UInt8>) {
        guard !datagram.isEmpty else { return nil }
        switch datagram[0] {
        case 0...3: self = .stun
        case 20...63: self = .dtls
        case 128...191:
            guard datagram.count >= 2 else { return nil }
            // As RTP these would be payload types 64 to 95 with the marker bit, which are reserved on a shared
            // port.
            self = (192...223).contains(datagram[1]) ? .rtcp : .rtp
        default: return nil
        }
    }
}
