import Base
import Wire

/// A recording of one session's RTP and RTCP headers, without payloads.
///
/// SRTP leaves the headers in the clear, so datagrams are recorded as they pass, before decryption. ICE and DTLS
/// are left out because they carry credentials. Used on one thread.
package final class HeaderCapture {
    /// Size limit of the file in bytes, about 200,000 packets; later packets are left out.
    package static let limit = 16 << 20
    /// Length of the RTCP header with the sender's SSRC; the rest is encrypted (RFC 3711 §3.4).
    private static let controlLength = 8

    /// The client's current address; nil before its first check.
    package var remote: TransportAddress?
    private let local: TransportAddress
    private let clock: WallClock
    private var file = PacketCapture()

    /// - Parameter local: the server's address as written to the file.
    package init(local: TransportAddress, clock: WallClock) {
        self.local = local
        self.clock = clock
    }

    /// The file so far, as pcap.
    package var bytes: [UInt8] { file.bytes }

    /// Records a datagram from the client, encrypted or not.
    package func noteReceived(_ datagram: Span<UInt8>, from source: TransportAddress, at now: MonotonicTime) {
        note(datagram, from: source, to: local, at: now)
    }

    /// Records a datagram to the client.
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

    /// Length of the part that carries no media; nil for datagrams that are neither RTP nor RTCP.
    /// - Source: RFC 3550 §5.1 and §5.3.1.
    private static func headerLength(of datagram: Span<UInt8>) -> Int? {
        switch DatagramKind(datagram) {
        case .rtcp: min(datagram.count, controlLength)
        case .rtp: try? RTPHeader.length(of: datagram)
        case .stun, .dtls, nil: nil
        }
    }
}
