import Base
import Wire

/// What is recorded of one session's datagrams: the headers of RTP and RTCP, and nothing of what they carry.
///
/// SRTP leaves them in the clear, so that the datagrams are looked at as they pass. ICE and DTLS are left out, because
/// what they say is a secret of their own. Lives on one thread.
package final class HeaderCapture {
    /// Of the file, in bytes: some 200,000 packets; what comes later is left out.
    package static let limit = 16 << 20
    /// RTCP's own header, and who sent it; all else is encrypted (RFC 3711 §3.4).
    private static let controlLength = 8

    /// Where the client is now; nil before its first check.
    package var remote: TransportAddress?
    private let local: TransportAddress
    private let clock: WallClock
    private var file = PacketCapture()

    /// - Parameter local: what the file says the server's address is.
    package init(local: TransportAddress, clock: WallClock) {
        self.local = local
        self.clock = clock
    }

    /// The file, as pcap.
    package var bytes: [UInt8] { file.bytes }

    /// Takes in a datagram that came from the client, encrypted or not.
    package func noteReceived(_ datagram: Span<UInt8>, from source: TransportAddress, at now: MonotonicTime) {
        note(datagram, from: source, to: local, at: now)
    }

    /// Takes in a datagram that leaves for the client.
    package func noteSent(_ datagram: Span<UInt8>, to destination: TransportAddress, at now: MonotonicTime) {
        note(datagram, from: local, to: destination, at: now)
    }

    private func note(
        _ datagram: Span<UInt8>, from source: TransportAddress, to destination: TransportAddress,
        at now: MonotonicTime
    ) {
        guard let length = Self.headerLength(of: datagram), file.bytes.count < Self.limit else { return }
        file.append(
            datagram.extracting(0..<length), of: datagram.count, from: source, to: destination,
            at: clock.unixNanoseconds(at: now))
    }

    /// Bytes that say nothing of what somebody sees or hears; nil for what is neither RTP nor RTCP.
    /// - Source: RFC 3550 §5.1 and §5.3.1.
    private static func headerLength(of datagram: Span<UInt8>) -> Int? {
        switch DatagramKind(datagram) {
        case .rtcp: min(datagram.count, controlLength)
        case .rtp: try? RTPHeader.length(of: datagram)
        case .stun, .dtls, nil: nil
        }
    }
}
